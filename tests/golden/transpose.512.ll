

define internal void @transpose_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  %row78 = alloca [1024 x i8], align 64
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v173, %end17 ]
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
  %a18 = phi i64 [ %v8, %do1 ], [ %v172, %end24 ]
  %v19 = icmp slt i64 %a18, %v14
  br i1 %v19, label %do16, label %end17
do16:
  %v20 = icmp slt i64 %a18, 0
  %v21 = select i1 %v20, i64 %a18, i64 0
  br label %for22
for22:
  %a25 = phi i64 [ %v7, %do16 ], [ %v171, %end160 ]
  %v26 = icmp slt i64 %a25, %v11
  br i1 %v26, label %do23, label %end24
do23:
  %v27 = icmp slt i64 %a25, 8
  %v28 = select i1 %v27, i64 %a25, i64 8
  %v29 = mul i64 %v21, 24
  %v30 = add i64 %v29, %v28
  %v31 = getelementptr float, ptr %p0, i64 %v30
  %v32 = load <16 x float>, ptr %v31, align 4
  %v33 = add i64 %v30, 24
  %v34 = getelementptr float, ptr %p0, i64 %v33
  %v35 = load <16 x float>, ptr %v34, align 4
  %v36 = add i64 %v30, 48
  %v37 = getelementptr float, ptr %p0, i64 %v36
  %v38 = load <16 x float>, ptr %v37, align 4
  %v39 = add i64 %v30, 72
  %v40 = getelementptr float, ptr %p0, i64 %v39
  %v41 = load <16 x float>, ptr %v40, align 4
  %v42 = add i64 %v30, 96
  %v43 = getelementptr float, ptr %p0, i64 %v42
  %v44 = load <16 x float>, ptr %v43, align 4
  %v45 = add i64 %v30, 120
  %v46 = getelementptr float, ptr %p0, i64 %v45
  %v47 = load <16 x float>, ptr %v46, align 4
  %v48 = add i64 %v30, 144
  %v49 = getelementptr float, ptr %p0, i64 %v48
  %v50 = load <16 x float>, ptr %v49, align 4
  %v51 = add i64 %v30, 168
  %v52 = getelementptr float, ptr %p0, i64 %v51
  %v53 = load <16 x float>, ptr %v52, align 4
  %v54 = add i64 %v30, 192
  %v55 = getelementptr float, ptr %p0, i64 %v54
  %v56 = load <16 x float>, ptr %v55, align 4
  %v57 = add i64 %v30, 216
  %v58 = getelementptr float, ptr %p0, i64 %v57
  %v59 = load <16 x float>, ptr %v58, align 4
  %v60 = add i64 %v30, 240
  %v61 = getelementptr float, ptr %p0, i64 %v60
  %v62 = load <16 x float>, ptr %v61, align 4
  %v63 = add i64 %v30, 264
  %v64 = getelementptr float, ptr %p0, i64 %v63
  %v65 = load <16 x float>, ptr %v64, align 4
  %v66 = add i64 %v30, 288
  %v67 = getelementptr float, ptr %p0, i64 %v66
  %v68 = load <16 x float>, ptr %v67, align 4
  %v69 = add i64 %v30, 312
  %v70 = getelementptr float, ptr %p0, i64 %v69
  %v71 = load <16 x float>, ptr %v70, align 4
  %v72 = add i64 %v30, 336
  %v73 = getelementptr float, ptr %p0, i64 %v72
  %v74 = load <16 x float>, ptr %v73, align 4
  %v75 = add i64 %v30, 360
  %v76 = getelementptr float, ptr %p0, i64 %v75
  %v77 = load <16 x float>, ptr %v76, align 4
  %v79 = shufflevector <16 x float> %v32, <16 x float> %v56, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v80 = shufflevector <16 x float> %v32, <16 x float> %v56, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v81 = shufflevector <16 x float> %v35, <16 x float> %v59, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v82 = shufflevector <16 x float> %v35, <16 x float> %v59, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v83 = shufflevector <16 x float> %v38, <16 x float> %v62, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v84 = shufflevector <16 x float> %v38, <16 x float> %v62, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v85 = shufflevector <16 x float> %v41, <16 x float> %v65, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v86 = shufflevector <16 x float> %v41, <16 x float> %v65, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v87 = shufflevector <16 x float> %v44, <16 x float> %v68, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v88 = shufflevector <16 x float> %v44, <16 x float> %v68, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v89 = shufflevector <16 x float> %v47, <16 x float> %v71, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v90 = shufflevector <16 x float> %v47, <16 x float> %v71, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v91 = shufflevector <16 x float> %v50, <16 x float> %v74, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v92 = shufflevector <16 x float> %v50, <16 x float> %v74, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v93 = shufflevector <16 x float> %v53, <16 x float> %v77, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v94 = shufflevector <16 x float> %v53, <16 x float> %v77, <16 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %v95 = shufflevector <16 x float> %v79, <16 x float> %v87, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v96 = shufflevector <16 x float> %v79, <16 x float> %v87, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v97 = shufflevector <16 x float> %v81, <16 x float> %v89, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v98 = shufflevector <16 x float> %v81, <16 x float> %v89, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v99 = shufflevector <16 x float> %v83, <16 x float> %v91, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v100 = shufflevector <16 x float> %v83, <16 x float> %v91, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v101 = shufflevector <16 x float> %v85, <16 x float> %v93, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v102 = shufflevector <16 x float> %v85, <16 x float> %v93, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v103 = shufflevector <16 x float> %v80, <16 x float> %v88, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v104 = shufflevector <16 x float> %v80, <16 x float> %v88, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v105 = shufflevector <16 x float> %v82, <16 x float> %v90, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v106 = shufflevector <16 x float> %v82, <16 x float> %v90, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v107 = shufflevector <16 x float> %v84, <16 x float> %v92, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v108 = shufflevector <16 x float> %v84, <16 x float> %v92, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v109 = shufflevector <16 x float> %v86, <16 x float> %v94, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 16, i32 17, i32 18, i32 19, i32 8, i32 9, i32 10, i32 11, i32 24, i32 25, i32 26, i32 27>
  %v110 = shufflevector <16 x float> %v86, <16 x float> %v94, <16 x i32> <i32 4, i32 5, i32 6, i32 7, i32 20, i32 21, i32 22, i32 23, i32 12, i32 13, i32 14, i32 15, i32 28, i32 29, i32 30, i32 31>
  %v111 = shufflevector <16 x float> %v95, <16 x float> %v99, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v112 = shufflevector <16 x float> %v95, <16 x float> %v99, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v113 = shufflevector <16 x float> %v97, <16 x float> %v101, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v114 = shufflevector <16 x float> %v97, <16 x float> %v101, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v115 = shufflevector <16 x float> %v96, <16 x float> %v100, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v116 = shufflevector <16 x float> %v96, <16 x float> %v100, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v117 = shufflevector <16 x float> %v98, <16 x float> %v102, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v118 = shufflevector <16 x float> %v98, <16 x float> %v102, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v119 = shufflevector <16 x float> %v103, <16 x float> %v107, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v120 = shufflevector <16 x float> %v103, <16 x float> %v107, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v121 = shufflevector <16 x float> %v105, <16 x float> %v109, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v122 = shufflevector <16 x float> %v105, <16 x float> %v109, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v123 = shufflevector <16 x float> %v104, <16 x float> %v108, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v124 = shufflevector <16 x float> %v104, <16 x float> %v108, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v125 = shufflevector <16 x float> %v106, <16 x float> %v110, <16 x i32> <i32 0, i32 1, i32 16, i32 17, i32 4, i32 5, i32 20, i32 21, i32 8, i32 9, i32 24, i32 25, i32 12, i32 13, i32 28, i32 29>
  %v126 = shufflevector <16 x float> %v106, <16 x float> %v110, <16 x i32> <i32 2, i32 3, i32 18, i32 19, i32 6, i32 7, i32 22, i32 23, i32 10, i32 11, i32 26, i32 27, i32 14, i32 15, i32 30, i32 31>
  %v127 = shufflevector <16 x float> %v111, <16 x float> %v113, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v128 = shufflevector <16 x float> %v111, <16 x float> %v113, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v129 = shufflevector <16 x float> %v112, <16 x float> %v114, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v130 = shufflevector <16 x float> %v112, <16 x float> %v114, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v131 = shufflevector <16 x float> %v115, <16 x float> %v117, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v132 = shufflevector <16 x float> %v115, <16 x float> %v117, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v133 = shufflevector <16 x float> %v116, <16 x float> %v118, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v134 = shufflevector <16 x float> %v116, <16 x float> %v118, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v135 = shufflevector <16 x float> %v119, <16 x float> %v121, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v136 = shufflevector <16 x float> %v119, <16 x float> %v121, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v137 = shufflevector <16 x float> %v120, <16 x float> %v122, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v138 = shufflevector <16 x float> %v120, <16 x float> %v122, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v139 = shufflevector <16 x float> %v123, <16 x float> %v125, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v140 = shufflevector <16 x float> %v123, <16 x float> %v125, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  %v141 = shufflevector <16 x float> %v124, <16 x float> %v126, <16 x i32> <i32 0, i32 16, i32 2, i32 18, i32 4, i32 20, i32 6, i32 22, i32 8, i32 24, i32 10, i32 26, i32 12, i32 28, i32 14, i32 30>
  %v142 = shufflevector <16 x float> %v124, <16 x float> %v126, <16 x i32> <i32 1, i32 17, i32 3, i32 19, i32 5, i32 21, i32 7, i32 23, i32 9, i32 25, i32 11, i32 27, i32 13, i32 29, i32 15, i32 31>
  store <16 x float> %v127, ptr %row78, align 4
  %v143 = getelementptr float, ptr %row78, i64 16
  store <16 x float> %v128, ptr %v143, align 4
  %v144 = getelementptr float, ptr %row78, i64 32
  store <16 x float> %v129, ptr %v144, align 4
  %v145 = getelementptr float, ptr %row78, i64 48
  store <16 x float> %v130, ptr %v145, align 4
  %v146 = getelementptr float, ptr %row78, i64 64
  store <16 x float> %v131, ptr %v146, align 4
  %v147 = getelementptr float, ptr %row78, i64 80
  store <16 x float> %v132, ptr %v147, align 4
  %v148 = getelementptr float, ptr %row78, i64 96
  store <16 x float> %v133, ptr %v148, align 4
  %v149 = getelementptr float, ptr %row78, i64 112
  store <16 x float> %v134, ptr %v149, align 4
  %v150 = getelementptr float, ptr %row78, i64 128
  store <16 x float> %v135, ptr %v150, align 4
  %v151 = getelementptr float, ptr %row78, i64 144
  store <16 x float> %v136, ptr %v151, align 4
  %v152 = getelementptr float, ptr %row78, i64 160
  store <16 x float> %v137, ptr %v152, align 4
  %v153 = getelementptr float, ptr %row78, i64 176
  store <16 x float> %v138, ptr %v153, align 4
  %v154 = getelementptr float, ptr %row78, i64 192
  store <16 x float> %v139, ptr %v154, align 4
  %v155 = getelementptr float, ptr %row78, i64 208
  store <16 x float> %v140, ptr %v155, align 4
  %v156 = getelementptr float, ptr %row78, i64 224
  store <16 x float> %v141, ptr %v156, align 4
  %v157 = getelementptr float, ptr %row78, i64 240
  store <16 x float> %v142, ptr %v157, align 4
  br label %for158
for158:
  %a161 = phi i64 [ 0, %do23 ], [ %v170, %do159 ]
  %v162 = icmp slt i64 %a161, 16
  br i1 %v162, label %do159, label %end160
do159:
  %v163 = add i64 %v28, %a161
  %v164 = mul i64 %a161, 16
  %v165 = getelementptr float, ptr %row78, i64 %v164
  %v166 = load <16 x float>, ptr %v165, align 4
  %v167 = mul i64 %v163, 16
  %v168 = add i64 %v167, %v21
  %v169 = getelementptr float, ptr %p1, i64 %v168
  store <16 x float> %v166, ptr %v169, align 4
  %v170 = add nsw i64 %a161, 1
  br label %for158
end160:
  %v171 = add nsw i64 %a25, 16
  br label %for22
end24:
  %v172 = add nsw i64 %a18, 16
  br label %for15
end17:
  %v173 = add nsw i64 %a3, 1
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
