

define internal void @sum_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end8 ]
  %i3c = icmp slt i64 %i3, 20
  br i1 %i3c, label %do1, label %end2
do1:
  %v4 = icmp slt i64 %i3, 12
  %v5 = select i1 %v4, i64 %i3, i64 12
  br label %for6
for6:
  %i9 = phi i64 [ 0, %do1 ], [ %i9n, %do7 ]
  %a10 = phi <8 x double> [ splat (double 0x0000000000000000), %do1 ], [ %v15, %do7 ]
  %i9c = icmp slt i64 %i9, 100
  br i1 %i9c, label %do7, label %end8
do7:
  %v11 = mul i64 %i9, 20
  %v12 = add i64 %v11, %v5
  %v13 = getelementptr double, ptr %p0, i64 %v12
  %v14 = load <8 x double>, ptr %v13, align 8
  %v15 = fadd <8 x double> %a10, %v14
  %i9n = add nsw i64 %i9, 1
  br label %for6
end8:
  %v16 = getelementptr double, ptr %p1, i64 %v5
  store <8 x double> %a10, ptr %v16, align 8
  %i3n = add nsw i64 %i3, 8
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
  call void @sum_0(ptr %ctx, i64 0, i64 20)
  ret i32 0
}
