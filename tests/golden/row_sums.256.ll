
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, <16 x i1>, <16 x float>)
define internal void @sum_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v36, %end7 ]
  %v4 = icmp slt i64 %a3, 8
  br i1 %v4, label %do1, label %end2
do1:
  br label %for5
for5:
  %a8 = phi i64 [ 0, %do1 ], [ %v16, %do6 ]
  %a9 = phi <16 x float> [ splat (float 0x0000000000000000), %do1 ], [ %v15, %do6 ]
  %v10 = icmp slt i64 %a8, 96
  br i1 %v10, label %do6, label %end7
do6:
  %v11 = mul i64 %a3, 100
  %v12 = add i64 %v11, %a8
  %v13 = getelementptr float, ptr %p0, i64 %v12
  %v14 = load <16 x float>, ptr %v13, align 4
  %v15 = fadd <16 x float> %a9, %v14
  %v16 = add nsw i64 %a8, 16
  br label %for5
end7:
  %v17 = mul i64 %a3, 100
  %v18 = add i64 %v17, 96
  %v19 = getelementptr float, ptr %p0, i64 %v18
  %v20 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr align 4 %v19, <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> zeroinitializer)
  %v21 = fadd <16 x float> %a9, %v20
  %v22 = select <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x float> %v21, <16 x float> %a9
  %v23 = shufflevector <16 x float> %v22, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v24 = shufflevector <16 x float> %v22, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v25 = fadd <8 x float> %v23, %v24
  %v26 = shufflevector <8 x float> %v25, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v27 = shufflevector <8 x float> %v25, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v28 = fadd <4 x float> %v26, %v27
  %v29 = shufflevector <4 x float> %v28, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v30 = shufflevector <4 x float> %v28, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v31 = fadd <2 x float> %v29, %v30
  %v32 = extractelement <2 x float> %v31, i64 0
  %v33 = extractelement <2 x float> %v31, i64 1
  %v34 = fadd float %v32, %v33
  %v35 = getelementptr float, ptr %p1, i64 %a3
  store float %v34, ptr %v35, align 4
  %v36 = add nsw i64 %a3, 1
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
