

define internal void @sum_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v18, %end7 ]
  %v4 = icmp slt i64 %a3, 20
  br i1 %v4, label %do1, label %end2
do1:
  br label %for5
for5:
  %a8 = phi i64 [ 0, %do1 ], [ %v16, %do6 ]
  %a9 = phi <4 x double> [ splat (double 0x0000000000000000), %do1 ], [ %v15, %do6 ]
  %v10 = icmp slt i64 %a8, 100
  br i1 %v10, label %do6, label %end7
do6:
  %v11 = mul i64 %a8, 20
  %v12 = add i64 %v11, %a3
  %v13 = getelementptr double, ptr %p0, i64 %v12
  %v14 = load <4 x double>, ptr %v13, align 8
  %v15 = fadd <4 x double> %a9, %v14
  %v16 = add nsw i64 %a8, 1
  br label %for5
end7:
  %v17 = getelementptr double, ptr %p1, i64 %a3
  store <4 x double> %a9, ptr %v17, align 8
  %v18 = add nsw i64 %a3, 4
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
