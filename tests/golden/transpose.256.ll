

define internal void @transpose_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  %row54 = alloca [256 x i8], align 64
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v101, %end17 ]
  %v4 = icmp slt i64 %a3, 1
  br i1 %v4, label %do1, label %end2
do1:
  %v5 = urem i64 %a3, 1
  %v6 = udiv i64 %a3, 1
  %v7 = mul i64 %v6, 32
  %v8 = mul i64 %v5, 32
  %v9 = add i64 %v7, 32
  %v10 = icmp slt i64 %v9, 24
  %v11 = select i1 %v10, i64 %v9, i64 24
  %v12 = add i64 %v8, 32
  %v13 = icmp slt i64 %v12, 16
  %v14 = select i1 %v13, i64 %v12, i64 16
  br label %for15
for15:
  %a18 = phi i64 [ %v8, %do1 ], [ %v100, %end24 ]
  %v19 = icmp slt i64 %a18, %v14
  br i1 %v19, label %do16, label %end17
do16:
  %v20 = icmp slt i64 %a18, 8
  %v21 = select i1 %v20, i64 %a18, i64 8
  br label %for22
for22:
  %a25 = phi i64 [ %v7, %do16 ], [ %v99, %end88 ]
  %v26 = icmp slt i64 %a25, %v11
  br i1 %v26, label %do23, label %end24
do23:
  %v27 = icmp slt i64 %a25, 16
  %v28 = select i1 %v27, i64 %a25, i64 16
  %v29 = mul i64 %v21, 24
  %v30 = add i64 %v29, %v28
  %v31 = getelementptr float, ptr %p0, i64 %v30
  %v32 = load <8 x float>, ptr %v31, align 4
  %v33 = add i64 %v30, 24
  %v34 = getelementptr float, ptr %p0, i64 %v33
  %v35 = load <8 x float>, ptr %v34, align 4
  %v36 = add i64 %v30, 48
  %v37 = getelementptr float, ptr %p0, i64 %v36
  %v38 = load <8 x float>, ptr %v37, align 4
  %v39 = add i64 %v30, 72
  %v40 = getelementptr float, ptr %p0, i64 %v39
  %v41 = load <8 x float>, ptr %v40, align 4
  %v42 = add i64 %v30, 96
  %v43 = getelementptr float, ptr %p0, i64 %v42
  %v44 = load <8 x float>, ptr %v43, align 4
  %v45 = add i64 %v30, 120
  %v46 = getelementptr float, ptr %p0, i64 %v45
  %v47 = load <8 x float>, ptr %v46, align 4
  %v48 = add i64 %v30, 144
  %v49 = getelementptr float, ptr %p0, i64 %v48
  %v50 = load <8 x float>, ptr %v49, align 4
  %v51 = add i64 %v30, 168
  %v52 = getelementptr float, ptr %p0, i64 %v51
  %v53 = load <8 x float>, ptr %v52, align 4
  %v55 = shufflevector <8 x float> %v32, <8 x float> %v44, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %v56 = shufflevector <8 x float> %v32, <8 x float> %v44, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %v57 = shufflevector <8 x float> %v35, <8 x float> %v47, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %v58 = shufflevector <8 x float> %v35, <8 x float> %v47, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %v59 = shufflevector <8 x float> %v38, <8 x float> %v50, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %v60 = shufflevector <8 x float> %v38, <8 x float> %v50, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %v61 = shufflevector <8 x float> %v41, <8 x float> %v53, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 8, i32 9, i32 10, i32 11>
  %v62 = shufflevector <8 x float> %v41, <8 x float> %v53, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 12, i32 13, i32 14, i32 15>
  %v63 = shufflevector <8 x float> %v55, <8 x float> %v59, <8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>
  %v64 = shufflevector <8 x float> %v55, <8 x float> %v59, <8 x i32> <i32 2, i32 3, i32 10, i32 11, i32 6, i32 7, i32 14, i32 15>
  %v65 = shufflevector <8 x float> %v57, <8 x float> %v61, <8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>
  %v66 = shufflevector <8 x float> %v57, <8 x float> %v61, <8 x i32> <i32 2, i32 3, i32 10, i32 11, i32 6, i32 7, i32 14, i32 15>
  %v67 = shufflevector <8 x float> %v56, <8 x float> %v60, <8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>
  %v68 = shufflevector <8 x float> %v56, <8 x float> %v60, <8 x i32> <i32 2, i32 3, i32 10, i32 11, i32 6, i32 7, i32 14, i32 15>
  %v69 = shufflevector <8 x float> %v58, <8 x float> %v62, <8 x i32> <i32 0, i32 1, i32 8, i32 9, i32 4, i32 5, i32 12, i32 13>
  %v70 = shufflevector <8 x float> %v58, <8 x float> %v62, <8 x i32> <i32 2, i32 3, i32 10, i32 11, i32 6, i32 7, i32 14, i32 15>
  %v71 = shufflevector <8 x float> %v63, <8 x float> %v65, <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %v72 = shufflevector <8 x float> %v63, <8 x float> %v65, <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  %v73 = shufflevector <8 x float> %v64, <8 x float> %v66, <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %v74 = shufflevector <8 x float> %v64, <8 x float> %v66, <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  %v75 = shufflevector <8 x float> %v67, <8 x float> %v69, <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %v76 = shufflevector <8 x float> %v67, <8 x float> %v69, <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  %v77 = shufflevector <8 x float> %v68, <8 x float> %v70, <8 x i32> <i32 0, i32 8, i32 2, i32 10, i32 4, i32 12, i32 6, i32 14>
  %v78 = shufflevector <8 x float> %v68, <8 x float> %v70, <8 x i32> <i32 1, i32 9, i32 3, i32 11, i32 5, i32 13, i32 7, i32 15>
  store <8 x float> %v71, ptr %row54, align 4
  %v79 = getelementptr float, ptr %row54, i64 8
  store <8 x float> %v72, ptr %v79, align 4
  %v80 = getelementptr float, ptr %row54, i64 16
  store <8 x float> %v73, ptr %v80, align 4
  %v81 = getelementptr float, ptr %row54, i64 24
  store <8 x float> %v74, ptr %v81, align 4
  %v82 = getelementptr float, ptr %row54, i64 32
  store <8 x float> %v75, ptr %v82, align 4
  %v83 = getelementptr float, ptr %row54, i64 40
  store <8 x float> %v76, ptr %v83, align 4
  %v84 = getelementptr float, ptr %row54, i64 48
  store <8 x float> %v77, ptr %v84, align 4
  %v85 = getelementptr float, ptr %row54, i64 56
  store <8 x float> %v78, ptr %v85, align 4
  br label %for86
for86:
  %a89 = phi i64 [ 0, %do23 ], [ %v98, %do87 ]
  %v90 = icmp slt i64 %a89, 8
  br i1 %v90, label %do87, label %end88
do87:
  %v91 = add i64 %v28, %a89
  %v92 = mul i64 %a89, 8
  %v93 = getelementptr float, ptr %row54, i64 %v92
  %v94 = load <8 x float>, ptr %v93, align 4
  %v95 = mul i64 %v91, 16
  %v96 = add i64 %v95, %v21
  %v97 = getelementptr float, ptr %p1, i64 %v96
  store <8 x float> %v94, ptr %v97, align 4
  %v98 = add nsw i64 %a89, 1
  br label %for86
end88:
  %v99 = add nsw i64 %a25, 8
  br label %for22
end24:
  %v100 = add nsw i64 %a18, 8
  br label %for15
end17:
  %v101 = add nsw i64 %a3, 1
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
