!0 = !{!"branch_weights", i32 1, i32 2000}
declare <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr>, <4 x i1>, <4 x double>)
declare i4 @llvm.cttz.i4(i4, i1)
define internal void @gather_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  %p2a = getelementptr ptr, ptr %ctx, i64 2
  %p2 = load ptr, ptr %p2a, align 8
  %statusa = getelementptr ptr, ptr %ctx, i64 3
  %status = load ptr, ptr %statusa, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v33, %good16 ]
  %v4 = icmp slt i64 %a3, 33
  br i1 %v4, label %do1, label %end2
do1:
  %v5 = icmp slt i64 %a3, 29
  %v6 = select i1 %v5, i64 %a3, i64 29
  %v7 = getelementptr i64, ptr %p0, i64 %v6
  %v8 = load <4 x i64>, ptr %v7, align 8
  %v9 = icmp slt <4 x i64> %v8, splat (i64 0)
  %v10 = add <4 x i64> %v8, splat (i64 50)
  %v11 = select <4 x i1> %v9, <4 x i64> %v10, <4 x i64> %v8
  %v12 = icmp uge <4 x i64> %v11, splat (i64 50)
  %v13 = bitcast <4 x i1> %v12 to i4
  %v14 = icmp ne i4 %v13, 0
  br i1 %v14, label %bad15, label %good16, !prof !0
bad15:
  %v17 = call i4 @llvm.cttz.i4(i4 %v13, i1 true)
  %v18 = extractelement <4 x i64> %v8, i4 %v17
  %v19 = getelementptr i64, ptr %status, i64 1
  %v20 = getelementptr i64, ptr %status, i64 7
  %v21 = load i64, ptr %status
  %v22 = load i64, ptr %v19
  %v23 = load i64, ptr %v20
  %v24 = icmp eq i64 %v23, 0
  %v25 = select i1 %v24, i64 %v18, i64 %v21
  store i64 %v25, ptr %status
  %v26 = select i1 %v24, i64 50, i64 %v22
  store i64 %v26, ptr %v19
  %v27 = select i1 %v24, i64 1, i64 %v23
  store i64 %v27, ptr %v20
  br label %good16
good16:
  %v28 = select <4 x i1> %v12, <4 x i64> splat (i64 0), <4 x i64> %v11
  %v29 = add <4 x i64> splat (i64 0), %v28
  %v30 = getelementptr double, ptr %p1, <4 x i64> %v29
  %v31 = call <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr> align 8 %v30, <4 x i1> splat (i1 true), <4 x double> zeroinitializer)
  %v32 = getelementptr double, ptr %p2, i64 %v6
  store <4 x double> %v31, ptr %v32, align 8
  %v33 = add nsw i64 %a3, 4
  br label %for0
end2:
  ret void
}

define i32 @jitney_entry(ptr %args) nounwind {
entry:
  %in0_at = getelementptr ptr, ptr %args, i64 0
  %in0 = load ptr, ptr %in0_at, align 8
  %in1_at = getelementptr ptr, ptr %args, i64 1
  %in1 = load ptr, ptr %in1_at, align 8
  %out0_at = getelementptr ptr, ptr %args, i64 2
  %out0 = load ptr, ptr %out0_at, align 8
  %arena_at = getelementptr ptr, ptr %args, i64 3
  %arena = load ptr, ptr %arena_at, align 8
  %status_at = getelementptr ptr, ptr %args, i64 4
  %status = load ptr, ptr %status_at, align 8
  %site_at = getelementptr i64, ptr %status, i64 7
  store i64 0, ptr %site_at, align 8
  %ctx = alloca [4 x ptr], align 16
  %t0 = getelementptr ptr, ptr %ctx, i64 0
  store ptr %in1, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %in0, ptr %t1, align 8
  %t2 = getelementptr ptr, ptr %ctx, i64 2
  store ptr %out0, ptr %t2, align 8
  %t3 = getelementptr ptr, ptr %ctx, i64 3
  store ptr %status, ptr %t3, align 8
  call void @gather_0(ptr %ctx, i64 0, i64 33)
  %t4 = load i64, ptr %site_at, align 8
  %t5 = icmp ne i64 %t4, 0
  %t6 = trunc i64 %t4 to i32
  br i1 %t5, label %fail7, label %fine8
fail7:
  ret i32 %t6
fine8:
  ret i32 0
}
