
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
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %do1 ]
  %i3c = icmp slt i64 %i3, 10
  br i1 %i3c, label %do1, label %end2
do1:
  %v4 = icmp slt i64 %i3, 6
  %v5 = select i1 %v4, i64 %i3, i64 6
  %v6 = getelementptr double, ptr %p0, i64 %v5
  %v7 = load <4 x double>, ptr %v6, align 8
  %v8 = fneg <4 x double> %v7
  %v9 = getelementptr double, ptr %p1, i64 %v5
  store <4 x double> %v8, ptr %v9, align 8
  %v10 = add i64 %v5, 50
  %v11 = getelementptr double, ptr %p0, i64 %v10
  %v12 = load <4 x double>, ptr %v11, align 8
  %v13 = fneg <4 x double> %v12
  %v14 = getelementptr double, ptr %p1, i64 %v10
  store <4 x double> %v13, ptr %v14, align 8
  %i3n = add nsw i64 %i3, 4
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
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %do1 ]
  %i3c = icmp slt i64 %i3, 4
  br i1 %i3c, label %do1, label %end2
do1:
  %v4 = insertelement <4 x i64> poison, i64 %i3, i64 0
  %v5 = shufflevector <4 x i64> %v4, <4 x i64> poison, <4 x i32> zeroinitializer
  %v6 = add <4 x i64> %v5, <i64 0, i64 1, i64 2, i64 3>
  %v7 = mul <4 x i64> %v6, splat (i64 10)
  %v8 = add <4 x i64> splat (i64 0), %v7
  %v9 = getelementptr double, ptr %p0, <4 x i64> %v8
  %v10 = call <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr> align 8 %v9, <4 x i1> splat (i1 true), <4 x double> zeroinitializer)
  %v11 = fneg <4 x double> %v10
  %v12 = getelementptr double, ptr %p1, <4 x i64> %v8
  call void @llvm.masked.scatter.v4f64.v4p0(<4 x double> %v11, <4 x ptr> align 8 %v12, <4 x i1> splat (i1 true))
  %v13 = add <4 x i64> splat (i64 9), %v7
  %v14 = getelementptr double, ptr %p0, <4 x i64> %v13
  %v15 = call <4 x double> @llvm.masked.gather.v4f64.v4p0(<4 x ptr> align 8 %v14, <4 x i1> splat (i1 true), <4 x double> zeroinitializer)
  %v16 = fneg <4 x double> %v15
  %v17 = getelementptr double, ptr %p1, <4 x i64> %v13
  call void @llvm.masked.scatter.v4f64.v4p0(<4 x double> %v16, <4 x ptr> align 8 %v17, <4 x i1> splat (i1 true))
  %i3n = add nsw i64 %i3, 4
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
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end6 ]
  %i3c = icmp slt i64 %i3, 4
  br i1 %i3c, label %do1, label %end2
do1:
  br label %for4
for4:
  %i7 = phi i64 [ 0, %do1 ], [ %i7n, %do5 ]
  %i7c = icmp slt i64 %i7, 8
  br i1 %i7c, label %do5, label %end6
do5:
  %v8 = mul i64 %i3, 8
  %v9 = add i64 %v8, %i7
  %v10 = getelementptr double, ptr %p0, i64 %v9
  %v11 = load <4 x double>, ptr %v10, align 8
  %v12 = mul i64 %i3, 10
  %v13 = add i64 %v12, %i7
  %v14 = getelementptr double, ptr %p1, i64 %v13
  store <4 x double> %v11, ptr %v14, align 8
  %i7n = add nsw i64 %i7, 4
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
