

define internal void @transpose_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  %row51 = alloca [256 x i8], align 64
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %end16 ]
  %i3c = icmp slt i64 %i3, 1
  br i1 %i3c, label %do1, label %end2
do1:
  %v4 = urem i64 %i3, 1
  %v5 = udiv i64 %i3, 1
  %v6 = mul i64 %v5, 32
  %v7 = mul i64 %v4, 32
  %v8 = add i64 %v6, 32
  %v9 = icmp slt i64 %v8, 24
  %v10 = select i1 %v9, i64 %v8, i64 24
  %v11 = add i64 %v7, 32
  %v12 = icmp slt i64 %v11, 16
  %v13 = select i1 %v12, i64 %v11, i64 16
  br label %for14
for14:
  %i17 = phi i64 [ %v7, %do1 ], [ %i17n, %end22 ]
  %i17c = icmp slt i64 %i17, %v13
  br i1 %i17c, label %do15, label %end16
do15:
  %v18 = icmp slt i64 %i17, 8
  %v19 = select i1 %v18, i64 %i17, i64 8
  br label %for20
for20:
  %i23 = phi i64 [ %v6, %do15 ], [ %i23n, %end86 ]
  %i23c = icmp slt i64 %i23, %v10
  br i1 %i23c, label %do21, label %end22
do21:
  %v24 = icmp slt i64 %i23, 16
  %v25 = select i1 %v24, i64 %i23, i64 16
  %v26 = mul i64 %v19, 24
  %v27 = add i64 %v26, %v25
  %v28 = getelementptr float, ptr %p0, i64 %v27
  %v29 = load <8 x float>, ptr %v28, align 4
  %v30 = add i64 %v27, 24
  %v31 = getelementptr float, ptr %p0, i64 %v30
  %v32 = load <8 x float>, ptr %v31, align 4
  %v33 = add i64 %v27, 48
  %v34 = getelementptr float, ptr %p0, i64 %v33
  %v35 = load <8 x float>, ptr %v34, align 4
  %v36 = add i64 %v27, 72
  %v37 = getelementptr float, ptr %p0, i64 %v36
  %v38 = load <8 x float>, ptr %v37, align 4
  %v39 = add i64 %v27, 96
  %v40 = getelementptr float, ptr %p0, i64 %v39
  %v41 = load <8 x float>, ptr %v40, align 4
  %v42 = add i64 %v27, 120
  %v43 = getelementptr float, ptr %p0, i64 %v42
  %v44 = load <8 x float>, ptr %v43, align 4
  %v45 = add i64 %v27, 144
  %v46 = getelementptr float, ptr %p0, i64 %v45
  %v47 = load <8 x float>, ptr %v46, align 4
  %v48 = add i64 %v27, 168
  %v49 = getelementptr float, ptr %p0, i64 %v48
  %v50 = load <8 x float>, ptr %v49, align 4
  %v52 = shufflevector <8 x float> %v29, <8 x float> %v41, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %v53 = shufflevector <8 x float> %v29, <8 x float> %v41, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %v54 = shufflevector <8 x float> %v32, <8 x float> %v44, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %v55 = shufflevector <8 x float> %v32, <8 x float> %v44, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %v56 = shufflevector <8 x float> %v35, <8 x float> %v47, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %v57 = shufflevector <8 x float> %v35, <8 x float> %v47, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %v58 = shufflevector <8 x float> %v38, <8 x float> %v50, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %v59 = shufflevector <8 x float> %v38, <8 x float> %v50, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %v60 = shufflevector <8 x float> %v52, <8 x float> %v56, <8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>
  %v61 = shufflevector <8 x float> %v52, <8 x float> %v56, <8 x i32> <i32 2, i32 3, i32 10, i32 11, i32 6, i32 7, i32 14, i32 15>
  %v62 = shufflevector <8 x float> %v54, <8 x float> %v58, <8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>
  %v63 = shufflevector <8 x float> %v54, <8 x float> %v58, <8 x i32> <i32 2, i32 3, i32 10, i32 11, i32 6, i32 7, i32 14, i32 15>
  %v64 = shufflevector <8 x float> %v53, <8 x float> %v57, <8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>
  %v65 = shufflevector <8 x float> %v53, <8 x float> %v57, <8 x i32> <i32 2, i32 3, i32 10, i32 11, i32 6, i32 7, i32 14, i32 15>
  %v66 = shufflevector <8 x float> %v55, <8 x float> %v59, <8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>
  %v67 = shufflevector <8 x float> %v55, <8 x float> %v59, <8 x i32> <i32 2, i32 3, i32 10, i32 11, i32 6, i32 7, i32 14, i32 15>
  %v68 = shufflevector <8 x float> %v60, <8 x float> %v62, <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %v69 = shufflevector <8 x float> %v60, <8 x float> %v62, <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  %v70 = shufflevector <8 x float> %v61, <8 x float> %v63, <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %v71 = shufflevector <8 x float> %v61, <8 x float> %v63, <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  %v72 = shufflevector <8 x float> %v64, <8 x float> %v66, <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %v73 = shufflevector <8 x float> %v64, <8 x float> %v66, <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  %v74 = shufflevector <8 x float> %v65, <8 x float> %v67, <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %v75 = shufflevector <8 x float> %v65, <8 x float> %v67, <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  %v76 = getelementptr float, ptr %row51, i64 0
  store <8 x float> %v68, ptr %v76, align 4
  %v77 = getelementptr float, ptr %row51, i64 8
  store <8 x float> %v69, ptr %v77, align 4
  %v78 = getelementptr float, ptr %row51, i64 16
  store <8 x float> %v70, ptr %v78, align 4
  %v79 = getelementptr float, ptr %row51, i64 24
  store <8 x float> %v71, ptr %v79, align 4
  %v80 = getelementptr float, ptr %row51, i64 32
  store <8 x float> %v72, ptr %v80, align 4
  %v81 = getelementptr float, ptr %row51, i64 40
  store <8 x float> %v73, ptr %v81, align 4
  %v82 = getelementptr float, ptr %row51, i64 48
  store <8 x float> %v74, ptr %v82, align 4
  %v83 = getelementptr float, ptr %row51, i64 56
  store <8 x float> %v75, ptr %v83, align 4
  br label %for84
for84:
  %i87 = phi i64 [ 0, %do21 ], [ %i87n, %do85 ]
  %i87c = icmp slt i64 %i87, 8
  br i1 %i87c, label %do85, label %end86
do85:
  %v88 = add i64 %v25, %i87
  %v89 = mul i64 %i87, 8
  %v90 = getelementptr float, ptr %row51, i64 %v89
  %v91 = load <8 x float>, ptr %v90, align 4
  %v92 = mul i64 %v88, 16
  %v93 = add i64 %v92, %v19
  %v94 = getelementptr float, ptr %p1, i64 %v93
  store <8 x float> %v91, ptr %v94, align 4
  %i87n = add nsw i64 %i87, 1
  br label %for84
end86:
  %i23n = add nsw i64 %i23, 8
  br label %for20
end22:
  %i17n = add nsw i64 %i17, 8
  br label %for14
end16:
  %i3n = add nsw i64 %i3, 1
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
  call void @transpose_0(ptr %ctx, i64 0, i64 1)
  ret i32 0
}
