
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>, <16 x float>)
define internal void @sum_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end6 ]
  %i3c = icmp slt i64 %i3, 8
  br i1 %i3c, label %do1, label %end2
do1:
  br label %for4
for4:
  %i7 = phi i64 [ 0, %do1 ], [ %i7n, %do5 ]
  %a8 = phi <16 x float> [ splat (float 0x0000000000000000), %do1 ], [ %v13, %do5 ]
  %i7c = icmp slt i64 %i7, 96
  br i1 %i7c, label %do5, label %end6
do5:
  %v9 = mul i64 %i3, 100
  %v10 = add i64 %v9, %i7
  %v11 = getelementptr float, ptr %p0, i64 %v10
  %v12 = load <16 x float>, ptr %v11, align 4
  %v13 = fadd <16 x float> %a8, %v12
  %i7n = add nsw i64 %i7, 16
  br label %for4
end6:
  %v14 = mul i64 %i3, 100
  %v15 = add i64 %v14, 96
  %v16 = getelementptr float, ptr %p0, i64 %v15
  %v17 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %v16, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> zeroinitializer)
  %v18 = fadd <16 x float> %a8, %v17
  %v19 = select <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> %v18, <16 x float> %a8
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
  %v32 = getelementptr float, ptr %p1, i64 %i3
  store float %v31, ptr %v32, align 4
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
  call void @sum_0(ptr %ctx, i64 0, i64 8)
  ret i32 0
}
