
declare <32 x double> @llvm.masked.load.v32f64.p0(ptr, <32 x i1>, <32 x double>)
declare void @llvm.masked.store.v32f64.p0(<32 x double>, ptr, <32 x i1>)
define internal void @sum_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %do1 ]
  %a4 = phi <32 x double> [ splat (double 0x0000000000000000), %entry ], [ %v9, %do1 ]
  %i3c = icmp slt i64 %i3, 100
  br i1 %i3c, label %do1, label %end2
do1:
  %v5 = mul i64 %i3, 20
  %v6 = add i64 %v5, 0
  %v7 = getelementptr double, ptr %p0, i64 %v6
  %v8 = call <32 x double> @llvm.masked.load.v32f64.p0(ptr align 8 %v7, <32 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>, <32 x double> zeroinitializer)
  %v9 = fadd <32 x double> %a4, %v8
  %i3n = add nsw i64 %i3, 1
  br label %for0
end2:
  %v10 = getelementptr double, ptr %p1, i64 0
  call void @llvm.masked.store.v32f64.p0(<32 x double> %a4, ptr align 8 %v10, <32 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false, i1 false>)
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
