!0 = !{!"branch_weights", i32 1, i32 2000}

define internal void @copy_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v8, %do1 ]
  %v4 = icmp slt i64 %a3, 40
  br i1 %v4, label %do1, label %end2
do1:
  %v5 = getelementptr double, ptr %p0, i64 %a3
  %v6 = load <8 x double>, ptr %v5, align 8
  %v7 = getelementptr double, ptr %p1, i64 %a3
  store <8 x double> %v6, ptr %v7, align 8
  %v8 = add nsw i64 %a3, 8
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
  %a3 = phi i64 [ 0, %entry ], [ %v44, %end7 ]
  %v4 = icmp slt i64 %a3, 1
  br i1 %v4, label %do1, label %end2
do1:
  br label %for5
for5:
  %a8 = phi i64 [ 0, %do1 ], [ %v43, %end12 ]
  %v9 = icmp slt i64 %a8, 3
  br i1 %v9, label %do6, label %end7
do6:
  br label %for10
for10:
  %a13 = phi i64 [ 0, %do6 ], [ %v42, %good26 ]
  %v14 = icmp slt i64 %a13, 8
  br i1 %v14, label %do11, label %end12
do11:
  %v15 = mul i64 %a8, 8
  %v16 = add i64 %v15, %a13
  %v17 = getelementptr double, ptr %p0, i64 %v16
  %v18 = load <8 x double>, ptr %v17, align 8
  %v19 = getelementptr i64, ptr %p1, i64 %a8
  %v20 = load i64, ptr %v19, align 8
  %v21 = icmp slt i64 %v20, 0
  %v22 = add i64 %v20, 5
  %v23 = select i1 %v21, i64 %v22, i64 %v20
  %v24 = icmp uge i64 %v23, 5
  br i1 %v24, label %bad25, label %good26, !prof !0
bad25:
  %v27 = getelementptr i64, ptr %status, i64 1
  %v28 = getelementptr i64, ptr %status, i64 7
  %v29 = load i64, ptr %status
  %v30 = load i64, ptr %v27
  %v31 = load i64, ptr %v28
  %v32 = icmp eq i64 %v31, 0
  %v33 = select i1 %v32, i64 %v20, i64 %v29
  store i64 %v33, ptr %status
  %v34 = select i1 %v32, i64 5, i64 %v30
  store i64 %v34, ptr %v27
  %v35 = select i1 %v32, i64 1, i64 %v31
  store i64 %v35, ptr %v28
  br label %good26
good26:
  %v36 = select i1 %v24, i64 0, i64 %v23
  %v37 = mul i64 %v36, 8
  %v38 = add i64 %v37, %a13
  %v39 = getelementptr double, ptr %p2, i64 %v38
  %v40 = load <8 x double>, ptr %v39, align 8
  %v41 = fadd <8 x double> %v40, %v18
  store <8 x double> %v41, ptr %v39, align 8
  %v42 = add nsw i64 %a13, 8
  br label %for10
end12:
  %v43 = add nsw i64 %a8, 1
  br label %for5
end7:
  %v44 = add nsw i64 %a3, 1
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
