

define internal void @transpose_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  %row75 = alloca [1024 x i8], align 64
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
  %v18 = icmp slt i64 %i17, 0
  %v19 = select i1 %v18, i64 %i17, i64 0
  br label %for20
for20:
  %i23 = phi i64 [ %v6, %do15 ], [ %i23n, %end158 ]
  %i23c = icmp slt i64 %i23, %v10
  br i1 %i23c, label %do21, label %end22
do21:
  %v24 = icmp slt i64 %i23, 8
  %v25 = select i1 %v24, i64 %i23, i64 8
  %v26 = mul i64 %v19, 24
  %v27 = add i64 %v26, %v25
  %v28 = getelementptr float, ptr %p0, i64 %v27
  %v29 = load <16 x float>, ptr %v28, align 4
  %v30 = add i64 %v27, 24
  %v31 = getelementptr float, ptr %p0, i64 %v30
  %v32 = load <16 x float>, ptr %v31, align 4
  %v33 = add i64 %v27, 48
  %v34 = getelementptr float, ptr %p0, i64 %v33
  %v35 = load <16 x float>, ptr %v34, align 4
  %v36 = add i64 %v27, 72
  %v37 = getelementptr float, ptr %p0, i64 %v36
  %v38 = load <16 x float>, ptr %v37, align 4
  %v39 = add i64 %v27, 96
  %v40 = getelementptr float, ptr %p0, i64 %v39
  %v41 = load <16 x float>, ptr %v40, align 4
  %v42 = add i64 %v27, 120
  %v43 = getelementptr float, ptr %p0, i64 %v42
  %v44 = load <16 x float>, ptr %v43, align 4
  %v45 = add i64 %v27, 144
  %v46 = getelementptr float, ptr %p0, i64 %v45
  %v47 = load <16 x float>, ptr %v46, align 4
  %v48 = add i64 %v27, 168
  %v49 = getelementptr float, ptr %p0, i64 %v48
  %v50 = load <16 x float>, ptr %v49, align 4
  %v51 = add i64 %v27, 192
  %v52 = getelementptr float, ptr %p0, i64 %v51
  %v53 = load <16 x float>, ptr %v52, align 4
  %v54 = add i64 %v27, 216
  %v55 = getelementptr float, ptr %p0, i64 %v54
  %v56 = load <16 x float>, ptr %v55, align 4
  %v57 = add i64 %v27, 240
  %v58 = getelementptr float, ptr %p0, i64 %v57
  %v59 = load <16 x float>, ptr %v58, align 4
  %v60 = add i64 %v27, 264
  %v61 = getelementptr float, ptr %p0, i64 %v60
  %v62 = load <16 x float>, ptr %v61, align 4
  %v63 = add i64 %v27, 288
  %v64 = getelementptr float, ptr %p0, i64 %v63
  %v65 = load <16 x float>, ptr %v64, align 4
  %v66 = add i64 %v27, 312
  %v67 = getelementptr float, ptr %p0, i64 %v66
  %v68 = load <16 x float>, ptr %v67, align 4
  %v69 = add i64 %v27, 336
  %v70 = getelementptr float, ptr %p0, i64 %v69
  %v71 = load <16 x float>, ptr %v70, align 4
  %v72 = add i64 %v27, 360
  %v73 = getelementptr float, ptr %p0, i64 %v72
  %v74 = load <16 x float>, ptr %v73, align 4
  %v76 = shufflevector <16 x float> %v29, <16 x float> %v53, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v77 = shufflevector <16 x float> %v29, <16 x float> %v53, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v78 = shufflevector <16 x float> %v32, <16 x float> %v56, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v79 = shufflevector <16 x float> %v32, <16 x float> %v56, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v80 = shufflevector <16 x float> %v35, <16 x float> %v59, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v81 = shufflevector <16 x float> %v35, <16 x float> %v59, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v82 = shufflevector <16 x float> %v38, <16 x float> %v62, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v83 = shufflevector <16 x float> %v38, <16 x float> %v62, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v84 = shufflevector <16 x float> %v41, <16 x float> %v65, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v85 = shufflevector <16 x float> %v41, <16 x float> %v65, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v86 = shufflevector <16 x float> %v44, <16 x float> %v68, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v87 = shufflevector <16 x float> %v44, <16 x float> %v68, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v88 = shufflevector <16 x float> %v47, <16 x float> %v71, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v89 = shufflevector <16 x float> %v47, <16 x float> %v71, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v90 = shufflevector <16 x float> %v50, <16 x float> %v74, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v91 = shufflevector <16 x float> %v50, <16 x float> %v74, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v92 = shufflevector <16 x float> %v76, <16 x float> %v84, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v93 = shufflevector <16 x float> %v76, <16 x float> %v84, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v94 = shufflevector <16 x float> %v78, <16 x float> %v86, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v95 = shufflevector <16 x float> %v78, <16 x float> %v86, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v96 = shufflevector <16 x float> %v80, <16 x float> %v88, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v97 = shufflevector <16 x float> %v80, <16 x float> %v88, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v98 = shufflevector <16 x float> %v82, <16 x float> %v90, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v99 = shufflevector <16 x float> %v82, <16 x float> %v90, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v100 = shufflevector <16 x float> %v77, <16 x float> %v85, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v101 = shufflevector <16 x float> %v77, <16 x float> %v85, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v102 = shufflevector <16 x float> %v79, <16 x float> %v87, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v103 = shufflevector <16 x float> %v79, <16 x float> %v87, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v104 = shufflevector <16 x float> %v81, <16 x float> %v89, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v105 = shufflevector <16 x float> %v81, <16 x float> %v89, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v106 = shufflevector <16 x float> %v83, <16 x float> %v91, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v107 = shufflevector <16 x float> %v83, <16 x float> %v91, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v108 = shufflevector <16 x float> %v92, <16 x float> %v96, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v109 = shufflevector <16 x float> %v92, <16 x float> %v96, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v110 = shufflevector <16 x float> %v94, <16 x float> %v98, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v111 = shufflevector <16 x float> %v94, <16 x float> %v98, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v112 = shufflevector <16 x float> %v93, <16 x float> %v97, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v113 = shufflevector <16 x float> %v93, <16 x float> %v97, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v114 = shufflevector <16 x float> %v95, <16 x float> %v99, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v115 = shufflevector <16 x float> %v95, <16 x float> %v99, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v116 = shufflevector <16 x float> %v100, <16 x float> %v104, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v117 = shufflevector <16 x float> %v100, <16 x float> %v104, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v118 = shufflevector <16 x float> %v102, <16 x float> %v106, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v119 = shufflevector <16 x float> %v102, <16 x float> %v106, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v120 = shufflevector <16 x float> %v101, <16 x float> %v105, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v121 = shufflevector <16 x float> %v101, <16 x float> %v105, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v122 = shufflevector <16 x float> %v103, <16 x float> %v107, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v123 = shufflevector <16 x float> %v103, <16 x float> %v107, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v124 = shufflevector <16 x float> %v108, <16 x float> %v110, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v125 = shufflevector <16 x float> %v108, <16 x float> %v110, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v126 = shufflevector <16 x float> %v109, <16 x float> %v111, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v127 = shufflevector <16 x float> %v109, <16 x float> %v111, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v128 = shufflevector <16 x float> %v112, <16 x float> %v114, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v129 = shufflevector <16 x float> %v112, <16 x float> %v114, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v130 = shufflevector <16 x float> %v113, <16 x float> %v115, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v131 = shufflevector <16 x float> %v113, <16 x float> %v115, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v132 = shufflevector <16 x float> %v116, <16 x float> %v118, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v133 = shufflevector <16 x float> %v116, <16 x float> %v118, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v134 = shufflevector <16 x float> %v117, <16 x float> %v119, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v135 = shufflevector <16 x float> %v117, <16 x float> %v119, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v136 = shufflevector <16 x float> %v120, <16 x float> %v122, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v137 = shufflevector <16 x float> %v120, <16 x float> %v122, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v138 = shufflevector <16 x float> %v121, <16 x float> %v123, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v139 = shufflevector <16 x float> %v121, <16 x float> %v123, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v140 = getelementptr float, ptr %row75, i64 0
  store <16 x float> %v124, ptr %v140, align 4
  %v141 = getelementptr float, ptr %row75, i64 16
  store <16 x float> %v125, ptr %v141, align 4
  %v142 = getelementptr float, ptr %row75, i64 32
  store <16 x float> %v126, ptr %v142, align 4
  %v143 = getelementptr float, ptr %row75, i64 48
  store <16 x float> %v127, ptr %v143, align 4
  %v144 = getelementptr float, ptr %row75, i64 64
  store <16 x float> %v128, ptr %v144, align 4
  %v145 = getelementptr float, ptr %row75, i64 80
  store <16 x float> %v129, ptr %v145, align 4
  %v146 = getelementptr float, ptr %row75, i64 96
  store <16 x float> %v130, ptr %v146, align 4
  %v147 = getelementptr float, ptr %row75, i64 112
  store <16 x float> %v131, ptr %v147, align 4
  %v148 = getelementptr float, ptr %row75, i64 128
  store <16 x float> %v132, ptr %v148, align 4
  %v149 = getelementptr float, ptr %row75, i64 144
  store <16 x float> %v133, ptr %v149, align 4
  %v150 = getelementptr float, ptr %row75, i64 160
  store <16 x float> %v134, ptr %v150, align 4
  %v151 = getelementptr float, ptr %row75, i64 176
  store <16 x float> %v135, ptr %v151, align 4
  %v152 = getelementptr float, ptr %row75, i64 192
  store <16 x float> %v136, ptr %v152, align 4
  %v153 = getelementptr float, ptr %row75, i64 208
  store <16 x float> %v137, ptr %v153, align 4
  %v154 = getelementptr float, ptr %row75, i64 224
  store <16 x float> %v138, ptr %v154, align 4
  %v155 = getelementptr float, ptr %row75, i64 240
  store <16 x float> %v139, ptr %v155, align 4
  br label %for156
for156:
  %i159 = phi i64 [ 0, %do21 ], [ %i159n, %do157 ]
  %i159c = icmp slt i64 %i159, 16
  br i1 %i159c, label %do157, label %end158
do157:
  %v160 = add i64 %v25, %i159
  %v161 = mul i64 %i159, 16
  %v162 = getelementptr float, ptr %row75, i64 %v161
  %v163 = load <16 x float>, ptr %v162, align 4
  %v164 = mul i64 %v160, 16
  %v165 = add i64 %v164, %v19
  %v166 = getelementptr float, ptr %p1, i64 %v165
  store <16 x float> %v163, ptr %v166, align 4
  %i159n = add nsw i64 %i159, 1
  br label %for156
end158:
  %i23n = add nsw i64 %i23, 16
  br label %for20
end22:
  %i17n = add nsw i64 %i17, 16
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
