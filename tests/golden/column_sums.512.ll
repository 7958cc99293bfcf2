

define internal void @sum_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v20, %end9 ]
  %v4 = icmp slt i64 %a3, 20
  br i1 %v4, label %do1, label %end2
do1:
  %v5 = icmp slt i64 %a3, 12
  %v6 = select i1 %v5, i64 %a3, i64 12
  br label %for7
for7:
  %a10 = phi i64 [ 0, %do1 ], [ %v18, %do8 ]
  %a11 = phi <8 x double> [ splat (double 0x0000000000000000), %do1 ], [ %v17, %do8 ]
  %v12 = icmp slt i64 %a10, 100
  br i1 %v12, label %do8, label %end9
do8:
  %v13 = mul i64 %a10, 20
  %v14 = add i64 %v13, %v6
  %v15 = getelementptr double, ptr %p0, i64 %v14
  %v16 = load <8 x double>, ptr %v15, align 8
  %v17 = fadd <8 x double> %a11, %v16
  %v18 = add nsw i64 %a10, 1
  br label %for7
end9:
  %v19 = getelementptr double, ptr %p1, i64 %v6
  store <8 x double> %a11, ptr %v19, align 8
  %v20 = add nsw i64 %a3, 8
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
