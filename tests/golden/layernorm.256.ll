
declare <32 x float> @llvm.fma.v32f32(<32 x float>, <32 x float>, <32 x float>)
declare float @llvm.sqrt.f32(float)
define internal void @sum_div_sub_mul_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end63 ]
  %i3c = icmp slt i64 %i3, 8
  br i1 %i3c, label %do1, label %end2
do1:
  br label %for4
for4:
  %i7 = phi i64 [ 0, %do1 ], [ %i7n, %do5 ]
  %a8 = phi <32 x float> [ splat (float 0x0000000000000000), %do1 ], [ %v13, %do5 ]
  %i7c = icmp slt i64 %i7, 64
  br i1 %i7c, label %do5, label %end6
do5:
  %v9 = mul i64 %i3, 64
  %v10 = add i64 %v9, %i7
  %v11 = getelementptr float, ptr %p0, i64 %v10
  %v12 = load <32 x float>, ptr %v11, align 4
  %v13 = fadd <32 x float> %a8, %v12
  %i7n = add nsw i64 %i7, 32
  br label %for4
end6:
  %v14 = shufflevector <32 x float> %a8, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v15 = shufflevector <32 x float> %a8, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v16 = fadd <16 x float> %v14, %v15
  %v17 = shufflevector <16 x float> %v16, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v18 = shufflevector <16 x float> %v16, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v19 = fadd <8 x float> %v17, %v18
  %v20 = shufflevector <8 x float> %v19, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v21 = shufflevector <8 x float> %v19, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v22 = fadd <4 x float> %v20, %v21
  %v23 = shufflevector <4 x float> %v22, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v24 = shufflevector <4 x float> %v22, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v25 = fadd <2 x float> %v23, %v24
  %v26 = extractelement <2 x float> %v25, i64 0
  %v27 = extractelement <2 x float> %v25, i64 1
  %v28 = fadd float %v26, %v27
  %v29 = fdiv float %v28, 0x4050000000000000
  br label %for30
for30:
  %i33 = phi i64 [ 0, %end6 ], [ %i33n, %do31 ]
  %a34 = phi <32 x float> [ splat (float 0x0000000000000000), %end6 ], [ %v42, %do31 ]
  %i33c = icmp slt i64 %i33, 64
  br i1 %i33c, label %do31, label %end32
do31:
  %v35 = mul i64 %i3, 64
  %v36 = add i64 %v35, %i33
  %v37 = getelementptr float, ptr %p0, i64 %v36
  %v38 = load <32 x float>, ptr %v37, align 4
  %v39 = insertelement <32 x float> poison, float %v29, i64 0
  %v40 = shufflevector <32 x float> %v39, <32 x float> poison, <32 x i32> zeroinitializer
  %v41 = fsub <32 x float> %v38, %v40
  %v42 = call <32 x float> @llvm.fma.v32f32(<32 x float> %v41, <32 x float> %v41, <32 x float> %a34)
  %i33n = add nsw i64 %i33, 32
  br label %for30
end32:
  %v43 = shufflevector <32 x float> %a34, <32 x float> poison, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v44 = shufflevector <32 x float> %a34, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v45 = fadd <16 x float> %v43, %v44
  %v46 = shufflevector <16 x float> %v45, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v47 = shufflevector <16 x float> %v45, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v48 = fadd <8 x float> %v46, %v47
  %v49 = shufflevector <8 x float> %v48, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v50 = shufflevector <8 x float> %v48, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v51 = fadd <4 x float> %v49, %v50
  %v52 = shufflevector <4 x float> %v51, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v53 = shufflevector <4 x float> %v51, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v54 = fadd <2 x float> %v52, %v53
  %v55 = extractelement <2 x float> %v54, i64 0
  %v56 = extractelement <2 x float> %v54, i64 1
  %v57 = fadd float %v55, %v56
  %v58 = fdiv float %v57, 0x4050000000000000
  %v59 = fadd float %v58, 0x3EE4F8B580000000
  %v60 = call float @llvm.sqrt.f32(float %v59)
  br label %for61
for61:
  %i64 = phi i64 [ 0, %end32 ], [ %i64n, %do62 ]
  %i64c = icmp slt i64 %i64, 64
  br i1 %i64c, label %do62, label %end63
do62:
  %v65 = mul i64 %i3, 64
  %v66 = add i64 %v65, %i64
  %v67 = getelementptr float, ptr %p0, i64 %v66
  %v68 = load <32 x float>, ptr %v67, align 4
  %v69 = insertelement <32 x float> poison, float %v29, i64 0
  %v70 = shufflevector <32 x float> %v69, <32 x float> poison, <32 x i32> zeroinitializer
  %v71 = fsub <32 x float> %v68, %v70
  %v72 = insertelement <32 x float> poison, float %v60, i64 0
  %v73 = shufflevector <32 x float> %v72, <32 x float> poison, <32 x i32> zeroinitializer
  %v74 = fdiv <32 x float> %v71, %v73
  %v75 = getelementptr float, ptr %p1, i64 %v66
  store <32 x float> %v74, ptr %v75, align 4
  %i64n = add nsw i64 %i64, 32
  br label %for61
end63:
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
