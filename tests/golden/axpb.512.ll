

define internal void @mul_add_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v12, %do1 ]
  %v4 = icmp slt i64 %a3, 1000
  br i1 %v4, label %do1, label %end2
do1:
  %v5 = icmp slt i64 %a3, 936
  %v6 = select i1 %v5, i64 %a3, i64 936
  %v7 = getelementptr float, ptr %p0, i64 %v6
  %v8 = load <64 x float>, ptr %v7, align 4
  %v9 = fmul <64 x float> %v8, splat (float 0x4000000000000000)
  %v10 = fadd <64 x float> %v9, splat (float 0x3FF0000000000000)
  %v11 = getelementptr float, ptr %p1, i64 %v6
  store <64 x float> %v10, ptr %v11, align 4
  %v12 = add nsw i64 %a3, 64
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
  call void @mul_add_0(ptr %ctx, i64 0, i64 1000)
  ret i32 0
}
