!0 = !{!"branch_weights", i32 1, i32 2000}

define internal void @copy_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %do1 ]
  %i3c = icmp slt i64 %i3, 40
  br i1 %i3c, label %do1, label %end2
do1:
  %v4 = getelementptr double, ptr %p0, i64 %i3
  %v5 = load <8 x double>, ptr %v4, align 8
  %v6 = getelementptr double, ptr %p1, i64 %i3
  store <8 x double> %v5, ptr %v6, align 8
  %i3n = add nsw i64 %i3, 8
  br label %for0
end2:
  ret void
}

define internal void @scatter_1(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
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
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end6 ]
  %i3c = icmp slt i64 %i3, 1
  br i1 %i3c, label %do1, label %end2
do1:
  br label %for4
for4:
  %i7 = phi i64 [ 0, %do1 ], [ %i7n, %end10 ]
  %i7c = icmp slt i64 %i7, 3
  br i1 %i7c, label %do5, label %end6
do5:
  br label %for8
for8:
  %i11 = phi i64 [ 0, %do5 ], [ %i11n, %good23 ]
  %i11c = icmp slt i64 %i11, 8
  br i1 %i11c, label %do9, label %end10
do9:
  %v12 = mul i64 %i7, 8
  %v13 = add i64 %v12, %i11
  %v14 = getelementptr double, ptr %p0, i64 %v13
  %v15 = load <4 x double>, ptr %v14, align 8
  %v16 = getelementptr i64, ptr %p1, i64 %i7
  %v17 = load i64, ptr %v16, align 8
  %v18 = icmp slt i64 %v17, 0
  %v19 = add i64 %v17, 5
  %v20 = select i1 %v18, i64 %v19, i64 %v17
  %v21 = icmp uge i64 %v20, 5
  br i1 %v21, label %bad22, label %good23, !prof !0
bad22:
  %v24 = getelementptr i64, ptr %status, i64 0
  %v25 = getelementptr i64, ptr %status, i64 1
  %v26 = getelementptr i64, ptr %status, i64 7
  %v27 = load i64, ptr %v24, align 8
  %v28 = load i64, ptr %v25, align 8
  %v29 = load i64, ptr %v26, align 8
  %v30 = icmp eq i64 %v29, 0
  %v31 = select i1 %v30, i64 %v17, i64 %v27
  store i64 %v31, ptr %v24, align 8
  %v32 = select i1 %v30, i64 5, i64 %v28
  store i64 %v32, ptr %v25, align 8
  %v33 = select i1 %v30, i64 1, i64 %v29
  store i64 %v33, ptr %v26, align 8
  br label %good23
good23:
  %v34 = select i1 %v21, i64 0, i64 %v20
  %v35 = mul i64 %v34, 8
  %v36 = add i64 %v35, %i11
  %v37 = getelementptr double, ptr %p2, i64 %v36
  %v38 = load <4 x double>, ptr %v37, align 8
  %v39 = fadd <4 x double> %v38, %v15
  store <4 x double> %v39, ptr %v37, align 8
  %i11n = add nsw i64 %i11, 4
  br label %for8
end10:
  %i7n = add nsw i64 %i7, 1
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
  %in2_at = getelementptr ptr, ptr %args, i64 2
  %in2 = load ptr, ptr %in2_at, align 8
  %out0_at = getelementptr ptr, ptr %args, i64 3
  %out0 = load ptr, ptr %out0_at, align 8
  %arena_at = getelementptr ptr, ptr %args, i64 4
  %arena = load ptr, ptr %arena_at, align 8
  %status_at = getelementptr ptr, ptr %args, i64 5
  %status = load ptr, ptr %status_at, align 8
  %site_at = getelementptr i64, ptr %status, i64 7
  store i64 0, ptr %site_at, align 8
  %ctx = alloca [4 x ptr], align 16
  %t0 = getelementptr ptr, ptr %ctx, i64 0
  store ptr %in0, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %out0, ptr %t1, align 8
  call void @copy_0(ptr %ctx, i64 0, i64 40)
  %t2 = getelementptr ptr, ptr %ctx, i64 0
  store ptr %in1, ptr %t2, align 8
  %t3 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %in2, ptr %t3, align 8
  %t4 = getelementptr ptr, ptr %ctx, i64 2
  store ptr %out0, ptr %t4, align 8
  %t5 = getelementptr ptr, ptr %ctx, i64 3
  store ptr %status, ptr %t5, align 8
  call void @scatter_1(ptr %ctx, i64 0, i64 1)
  %t6 = load i64, ptr %site_at, align 8
  %t7 = icmp ne i64 %t6, 0
  %t8 = trunc i64 %t6 to i32
  br i1 %t7, label %fail9, label %fine10
fail9:
  ret i32 %t8
fine10:
  ret i32 0
}
