
declare <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr>, <4 x i1>, <4 x double>)
declare void @llvm.masked.scatter.v4f64.v4p0(<4 x double>, <4 x ptr>, <4 x i1>)
define internal void @neg_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v16, %do1 ]
  %v4 = icmp slt i64 %a3, 10
  br i1 %v4, label %do1, label %end2
do1:
  %v5 = icmp slt i64 %a3, 6
  %v6 = select i1 %v5, i64 %a3, i64 6
  %v7 = getelementptr double, ptr %p0, i64 %v6
  %v8 = load <4 x double>, ptr %v7, align 8
  %v9 = fneg <4 x double> %v8
  %v10 = getelementptr double, ptr %p1, i64 %v6
  store <4 x double> %v9, ptr %v10, align 8
  %v11 = add i64 %v6, 50
  %v12 = getelementptr double, ptr %p0, i64 %v11
  %v13 = load <4 x double>, ptr %v12, align 8
  %v14 = fneg <4 x double> %v13
  %v15 = getelementptr double, ptr %p1, i64 %v11
  store <4 x double> %v14, ptr %v15, align 8
  %v16 = add nsw i64 %a3, 4
  br label %for0
end2:
  ret void
}

define internal void @neg_1(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v19, %do1 ]
  %v4 = icmp slt i64 %a3, 4
  br i1 %v4, label %do1, label %end2
do1:
  %v5 = insertelement <4 x i64> poison, i64 %a3, i64 0
  %v6 = shufflevector <4 x i64> %v5, <4 x i64> poison, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
  %v7 = add <4 x i64> %v6, <i64 0, i64 1, i64 2, i64 3>
  %v8 = mul <4 x i64> %v7, splat (i64 10)
  %v9 = add <4 x i64> splat (i64 0), %v8
  %v10 = getelementptr double, ptr %p0, <4 x i64> %v9
  %v11 = call <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr> align 8 %v10, <4 x i1> splat (i1 true), <4 x double> zeroinitializer)
  %v12 = fneg <4 x double> %v11
  %v13 = getelementptr double, ptr %p1, <4 x i64> %v9
  call void @llvm.masked.scatter.v4f64.v4p0(<4 x double> %v12, <4 x ptr> align 8 %v13, <4 x i1> splat (i1 true))
  %v14 = add <4 x i64> splat (i64 9), %v8
  %v15 = getelementptr double, ptr %p0, <4 x i64> %v14
  %v16 = call <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr> align 8 %v15, <4 x i1> splat (i1 true), <4 x double> zeroinitializer)
  %v17 = fneg <4 x double> %v16
  %v18 = getelementptr double, ptr %p1, <4 x i64> %v14
  call void @llvm.masked.scatter.v4f64.v4p0(<4 x double> %v17, <4 x ptr> align 8 %v18, <4 x i1> splat (i1 true))
  %v19 = add nsw i64 %a3, 4
  br label %for0
end2:
  ret void
}

define internal void @update_slice_2(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v18, %end7 ]
  %v4 = icmp slt i64 %a3, 4
  br i1 %v4, label %do1, label %end2
do1:
  br label %for5
for5:
  %a8 = phi i64 [ 0, %do1 ], [ %v17, %do6 ]
  %v9 = icmp slt i64 %a8, 8
  br i1 %v9, label %do6, label %end7
do6:
  %v10 = mul i64 %a3, 8
  %v11 = add i64 %v10, %a8
  %v12 = getelementptr double, ptr %p0, i64 %v11
  %v13 = load <4 x double>, ptr %v12, align 8
  %v14 = mul i64 %a3, 10
  %v15 = add i64 %v14, %a8
  %v16 = getelementptr double, ptr %p1, i64 %v15
  store <4 x double> %v13, ptr %v16, align 8
  %v17 = add nsw i64 %a8, 4
  br label %for5
end7:
  %v18 = add nsw i64 %a3, 1
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
  store ptr %in0, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %out0, ptr %t1, align 8
  call void @neg_0(ptr %ctx, i64 0, i64 10)
  %t2 = getelementptr i8, ptr %in0, i64 80
  %t3 = getelementptr i8, ptr %out0, i64 80
  %t4 = getelementptr ptr, ptr %ctx, i64 0
  store ptr %t2, ptr %t4, align 8
  %t5 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %t3, ptr %t5, align 8
  call void @neg_1(ptr %ctx, i64 0, i64 4)
  %t6 = getelementptr i8, ptr %out0, i64 88
  %t7 = getelementptr ptr, ptr %ctx, i64 0
  store ptr %in1, ptr %t7, align 8
  %t8 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %t6, ptr %t8, align 8
  call void @update_slice_2(ptr %ctx, i64 0, i64 4)
  ret i32 0
}
