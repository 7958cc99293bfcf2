
declare <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, <16 x i1>, <16 x float>)
define internal void @transpose_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end6 ]
  %i3c = icmp slt i64 %i3, 24
  br i1 %i3c, label %do1, label %end2
do1:
  br label %for4
for4:
  %i7 = phi i64 [ 0, %do1 ], [ %i7n, %do5 ]
  %i7c = icmp slt i64 %i7, 16
  br i1 %i7c, label %do5, label %end6
do5:
  %v8 = insertelement <16 x i64> poison, i64 %i3, i64 0
  %v9 = shufflevector <16 x i64> %v8, <16 x i64> poison, <16 x i32> zeroinitializer
  %v10 = insertelement <16 x i64> poison, i64 %i7, i64 0
  %v11 = shufflevector <16 x i64> %v10, <16 x i64> poison, <16 x i32> zeroinitializer
  %v12 = add <16 x i64> %v11, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15>
  %v13 = mul <16 x i64> %v12, splat (i64 24)
  %v14 = add <16 x i64> %v9, %v13
  %v15 = getelementptr float, ptr %p0, <16 x i64> %v14
  %v16 = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %v15, <16 x i1> splat (i1 true), <16 x float> zeroinitializer)
  %v17 = mul i64 %i3, 16
  %v18 = add i64 %v17, %i7
  %v19 = getelementptr float, ptr %p1, i64 %v18
  store <16 x float> %v16, ptr %v19, align 4
  %i7n = add nsw i64 %i7, 16
  br label %for4
end6:
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
  call void @transpose_0(ptr %ctx, i64 0, i64 24)
  ret i32 0
}
