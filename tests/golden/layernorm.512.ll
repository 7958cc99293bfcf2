
declare <64 x float> @llvm.fma.v64f32(<64 x float>, <64 x float>, <64 x float>)
declare float @llvm.sqrt.f32(float)
define internal void @sum_div_sub_mul_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end69 ]
  %i3c = icmp slt i64 %i3, 8
  br i1 %i3c, label %do1, label %end2
do1:
  br label %for4
for4:
  %i7 = phi i64 [ 0, %do1 ], [ %i7n, %do5 ]
  %a8 = phi <64 x float> [ splat (float 0x0000000000000000), %do1 ], [ %v13, %do5 ]
  %i7c = icmp slt i64 %i7, 64
  br i1 %i7c, label %do5, label %end6
do5:
  %v9 = mul i64 %i3, 64
  %v10 = add i64 %v9, %i7
  %v11 = getelementptr float, ptr %p0, i64 %v10
  %v12 = load <64 x float>, ptr %v11, align 4
  %v13 = fadd <64 x float> %a8, %v12
  %i7n = add nsw i64 %i7, 64
  br label %for4
end6:
  %v14 = shufflevector <64 x float> %a8, <64 x float> poison, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v15 = shufflevector <64 x float> %a8, <64 x float> poison, <32 x i32> <i32 32, i32 33, i32 34, i32 35, i32 36, i32 37, i32 38, i32 39, i32 40, i32 41, i32 42, i32 43, i32 44, i32 45, i32 46, i32 47, i32 48, i32 49, i32 50, i32 51, i32 52, i32 53, i32 54, i32 55, i32 56, i32 57, i32 58, i32 59, i32 60, i32 61, i32 62, i32 63>
  %v16 = fadd <32 x float> %v14, %v15
  %v17 = shufflevector <32 x float> %v16, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v18 = shufflevector <32 x float> %v16, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v19 = fadd <16 x float> %v17, %v18
  %v20 = shufflevector <16 x float> %v19, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v21 = shufflevector <16 x float> %v19, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v22 = fadd <8 x float> %v20, %v21
  %v23 = shufflevector <8 x float> %v22, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v24 = shufflevector <8 x float> %v22, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v25 = fadd <4 x float> %v23, %v24
  %v26 = shufflevector <4 x float> %v25, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v27 = shufflevector <4 x float> %v25, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v28 = fadd <2 x float> %v26, %v27
  %v29 = extractelement <2 x float> %v28, i64 0
  %v30 = extractelement <2 x float> %v28, i64 1
  %v31 = fadd float %v29, %v30
  %v32 = fdiv float %v31, 0x4050000000000000
  br label %for33
for33:
  %i36 = phi i64 [ 0, %end6 ], [ %i36n, %do34 ]
  %a37 = phi <64 x float> [ splat (float 0x0000000000000000), %end6 ], [ %v45, %do34 ]
  %i36c = icmp slt i64 %i36, 64
  br i1 %i36c, label %do34, label %end35
do34:
  %v38 = mul i64 %i3, 64
  %v39 = add i64 %v38, %i36
  %v40 = getelementptr float, ptr %p0, i64 %v39
  %v41 = load <64 x float>, ptr %v40, align 4
  %v42 = insertelement <64 x float> poison, float %v32, i64 0
  %v43 = shufflevector <64 x float> %v42, <64 x float> poison, <64 x i32> zeroinitializer
  %v44 = fsub <64 x float> %v41, %v43
  %v45 = call <64 x float> @llvm.fma.v64f32(<64 x float> %v44, <64 x float> %v44, <64 x float> %a37)
  %i36n = add nsw i64 %i36, 64
  br label %for33
end35:
  %v46 = shufflevector <64 x float> %a37, <64 x float> poison, <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v47 = shufflevector <64 x float> %a37, <64 x float> poison, <32 x i32> <i32 32, i32 33, i32 34, i32 35, i32 36, i32 37, i32 38, i32 39, i32 40, i32 41, i32 42, i32 43, i32 44, i32 45, i32 46, i32 47, i32 48, i32 49, i32 50, i32 51, i32 52, i32 53, i32 54, i32 55, i32 56, i32 57, i32 58, i32 59, i32 60, i32 61, i32 62, i32 63>
  %v48 = fadd <32 x float> %v46, %v47
  %v49 = shufflevector <32 x float> %v48, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v50 = shufflevector <32 x float> %v48, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v51 = fadd <16 x float> %v49, %v50
  %v52 = shufflevector <16 x float> %v51, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v53 = shufflevector <16 x float> %v51, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v54 = fadd <8 x float> %v52, %v53
  %v55 = shufflevector <8 x float> %v54, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v56 = shufflevector <8 x float> %v54, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v57 = fadd <4 x float> %v55, %v56
  %v58 = shufflevector <4 x float> %v57, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v59 = shufflevector <4 x float> %v57, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v60 = fadd <2 x float> %v58, %v59
  %v61 = extractelement <2 x float> %v60, i64 0
  %v62 = extractelement <2 x float> %v60, i64 1
  %v63 = fadd float %v61, %v62
  %v64 = fdiv float %v63, 0x4050000000000000
  %v65 = fadd float %v64, 0x3EE4F8B580000000
  %v66 = call float @llvm.sqrt.f32(float %v65)
  br label %for67
for67:
  %i70 = phi i64 [ 0, %end35 ], [ %i70n, %do68 ]
  %i70c = icmp slt i64 %i70, 64
  br i1 %i70c, label %do68, label %end69
do68:
  %v71 = mul i64 %i3, 64
  %v72 = add i64 %v71, %i70
  %v73 = getelementptr float, ptr %p0, i64 %v72
  %v74 = load <64 x float>, ptr %v73, align 4
  %v75 = insertelement <64 x float> poison, float %v32, i64 0
  %v76 = shufflevector <64 x float> %v75, <64 x float> poison, <64 x i32> zeroinitializer
  %v77 = fsub <64 x float> %v74, %v76
  %v78 = insertelement <64 x float> poison, float %v66, i64 0
  %v79 = shufflevector <64 x float> %v78, <64 x float> poison, <64 x i32> zeroinitializer
  %v80 = fdiv <64 x float> %v77, %v79
  %v81 = getelementptr float, ptr %p1, i64 %v72
  store <64 x float> %v80, ptr %v81, align 4
  %i70n = add nsw i64 %i70, 64
  br label %for67
end69:
  %i3n = add nsw i64 %i3, 1
  br label %for0
end2:
  ret void
}

define i32 @jitney_entry(ptr %args) nounwind {
entry:
  %in0_at = getelementptr ptr, ptr %args, i64 0
  %in0 = load ptr, ptr %in0_at, align 8
  %out0_at = getelementptr ptr, ptr %args, i64 1
  %out0 = load ptr, ptr %out0_at, align 8
  %arena_at = getelementptr ptr, ptr %args, i64 2
  %arena = load ptr, ptr %arena_at, align 8
  %status_at = getelementptr ptr, ptr %args, i64 3
  %status = load ptr, ptr %status_at, align 8
  %site_at = getelementptr i64, ptr %status, i64 7
  store i64 0, ptr %site_at, align 8
  %ctx = alloca [4 x ptr], align 16
  %t0 = getelementptr ptr, ptr %ctx, i64 0
  store ptr %in0, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %out0, ptr %t1, align 8
  call void @sum_div_sub_mul_0(ptr %ctx, i64 0, i64 8)
  ret i32 0
}
