
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare float @llvm.sqrt.f32(float)
define internal void @sum_div_sub_mul_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end57 ]
  %i3c = icmp slt i64 %i3, 8
  br i1 %i3c, label %do1, label %end2
do1:
  br label %for4
for4:
  %i7 = phi i64 [ 0, %do1 ], [ %i7n, %do5 ]
  %a8 = phi <16 x float> [ splat (float 0x0000000000000000), %do1 ], [ %v13, %do5 ]
  %i7c = icmp slt i64 %i7, 64
  br i1 %i7c, label %do5, label %end6
do5:
  %v9 = mul i64 %i3, 64
  %v10 = add i64 %v9, %i7
  %v11 = getelementptr float, ptr %p0, i64 %v10
  %v12 = load <16 x float>, ptr %v11, align 4
  %v13 = fadd <16 x float> %a8, %v12
  %i7n = add nsw i64 %i7, 16
  br label %for4
end6:
  %v14 = shufflevector <16 x float> %a8, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v15 = shufflevector <16 x float> %a8, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v16 = fadd <8 x float> %v14, %v15
  %v17 = shufflevector <8 x float> %v16, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v18 = shufflevector <8 x float> %v16, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v19 = fadd <4 x float> %v17, %v18
  %v20 = shufflevector <4 x float> %v19, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v21 = shufflevector <4 x float> %v19, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v22 = fadd <2 x float> %v20, %v21
  %v23 = extractelement <2 x float> %v22, i64 0
  %v24 = extractelement <2 x float> %v22, i64 1
  %v25 = fadd float %v23, %v24
  %v26 = fdiv float %v25, 0x4050000000000000
  br label %for27
for27:
  %i30 = phi i64 [ 0, %end6 ], [ %i30n, %do28 ]
  %a31 = phi <16 x float> [ splat (float 0x0000000000000000), %end6 ], [ %v39, %do28 ]
  %i30c = icmp slt i64 %i30, 64
  br i1 %i30c, label %do28, label %end29
do28:
  %v32 = mul i64 %i3, 64
  %v33 = add i64 %v32, %i30
  %v34 = getelementptr float, ptr %p0, i64 %v33
  %v35 = load <16 x float>, ptr %v34, align 4
  %v36 = insertelement <16 x float> poison, float %v26, i64 0
  %v37 = shufflevector <16 x float> %v36, <16 x float> poison, <16 x i32> zeroinitializer
  %v38 = fsub <16 x float> %v35, %v37
  %v39 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v38, <16 x float> %v38, <16 x float> %a31)
  %i30n = add nsw i64 %i30, 16
  br label %for27
end29:
  %v40 = shufflevector <16 x float> %a31, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v41 = shufflevector <16 x float> %a31, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v42 = fadd <8 x float> %v40, %v41
  %v43 = shufflevector <8 x float> %v42, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v44 = shufflevector <8 x float> %v42, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v45 = fadd <4 x float> %v43, %v44
  %v46 = shufflevector <4 x float> %v45, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v47 = shufflevector <4 x float> %v45, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v48 = fadd <2 x float> %v46, %v47
  %v49 = extractelement <2 x float> %v48, i64 0
  %v50 = extractelement <2 x float> %v48, i64 1
  %v51 = fadd float %v49, %v50
  %v52 = fdiv float %v51, 0x4050000000000000
  %v53 = fadd float %v52, 0x3EE4F8B580000000
  %v54 = call float @llvm.sqrt.f32(float %v53)
  br label %for55
for55:
  %i58 = phi i64 [ 0, %end29 ], [ %i58n, %do56 ]
  %i58c = icmp slt i64 %i58, 64
  br i1 %i58c, label %do56, label %end57
do56:
  %v59 = mul i64 %i3, 64
  %v60 = add i64 %v59, %i58
  %v61 = getelementptr float, ptr %p0, i64 %v60
  %v62 = load <16 x float>, ptr %v61, align 4
  %v63 = insertelement <16 x float> poison, float %v26, i64 0
  %v64 = shufflevector <16 x float> %v63, <16 x float> poison, <16 x i32> zeroinitializer
  %v65 = fsub <16 x float> %v62, %v64
  %v66 = insertelement <16 x float> poison, float %v54, i64 0
  %v67 = shufflevector <16 x float> %v66, <16 x float> poison, <16 x i32> zeroinitializer
  %v68 = fdiv <16 x float> %v65, %v67
  %v69 = getelementptr float, ptr %p1, i64 %v60
  store <16 x float> %v68, ptr %v69, align 4
  %i58n = add nsw i64 %i58, 16
  br label %for55
end57:
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
