
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare float @llvm.sqrt.f32(float)
define internal void @sum_div_sub_mul_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %a3 = phi i64 [ 0, %entry ], [ %v77, %end62 ]
  %v4 = icmp slt i64 %a3, 8
  br i1 %v4, label %do1, label %end2
do1:
  br label %for5
for5:
  %a8 = phi i64 [ 0, %do1 ], [ %v16, %do6 ]
  %a9 = phi <16 x float> [ splat (float 0x0000000000000000), %do1 ], [ %v15, %do6 ]
  %v10 = icmp slt i64 %a8, 64
  br i1 %v10, label %do6, label %end7
do6:
  %v11 = mul i64 %a3, 64
  %v12 = add i64 %v11, %a8
  %v13 = getelementptr float, ptr %p0, i64 %v12
  %v14 = load <16 x float>, ptr %v13, align 4
  %v15 = fadd <16 x float> %a9, %v14
  %v16 = add nsw i64 %a8, 16
  br label %for5
end7:
  %v17 = shufflevector <16 x float> %a9, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v18 = shufflevector <16 x float> %a9, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v19 = fadd <8 x float> %v17, %v18
  %v20 = shufflevector <8 x float> %v19, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v21 = shufflevector <8 x float> %v19, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v22 = fadd <4 x float> %v20, %v21
  %v23 = shufflevector <4 x float> %v22, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v24 = shufflevector <4 x float> %v22, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v25 = fadd <2 x float> %v23, %v24
  %v26 = extractelement <2 x float> %v25, i64 0
  %v27 = extractelement <2 x float> %v25, i64 1
  %v28 = fadd float %v26, %v27
  %v29 = fdiv float %v28, 0x4050000000000000
  br label %for30
for30:
  %a33 = phi i64 [ 0, %end7 ], [ %v44, %do31 ]
  %a34 = phi <16 x float> [ splat (float 0x0000000000000000), %end7 ], [ %v43, %do31 ]
  %v35 = icmp slt i64 %a33, 64
  br i1 %v35, label %do31, label %end32
do31:
  %v36 = mul i64 %a3, 64
  %v37 = add i64 %v36, %a33
  %v38 = getelementptr float, ptr %p0, i64 %v37
  %v39 = load <16 x float>, ptr %v38, align 4
  %v40 = insertelement <16 x float> poison, float %v29, i64 0
  %v41 = shufflevector <16 x float> %v40, <16 x float> poison, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %v42 = fsub <16 x float> %v39, %v41
  %v43 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v42, <16 x float> %v42, <16 x float> %a34)
  %v44 = add nsw i64 %a33, 16
  br label %for30
end32:
  %v45 = shufflevector <16 x float> %a34, <16 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %v46 = shufflevector <16 x float> %a34, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v47 = fadd <8 x float> %v45, %v46
  %v48 = shufflevector <8 x float> %v47, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %v49 = shufflevector <8 x float> %v47, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %v50 = fadd <4 x float> %v48, %v49
  %v51 = shufflevector <4 x float> %v50, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v52 = shufflevector <4 x float> %v50, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v53 = fadd <2 x float> %v51, %v52
  %v54 = extractelement <2 x float> %v53, i64 0
  %v55 = extractelement <2 x float> %v53, i64 1
  %v56 = fadd float %v54, %v55
  %v57 = fdiv float %v56, 0x4050000000000000
  %v58 = fadd float %v57, 0x3EE4F8B580000000
  %v59 = call float @llvm.sqrt.f32(float %v58)
  br label %for60
for60:
  %a63 = phi i64 [ 0, %end32 ], [ %v76, %do61 ]
  %v64 = icmp slt i64 %a63, 64
  br i1 %v64, label %do61, label %end62
do61:
  %v65 = mul i64 %a3, 64
  %v66 = add i64 %v65, %a63
  %v67 = getelementptr float, ptr %p0, i64 %v66
  %v68 = load <16 x float>, ptr %v67, align 4
  %v69 = insertelement <16 x float> poison, float %v29, i64 0
  %v70 = shufflevector <16 x float> %v69, <16 x float> poison, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %v71 = fsub <16 x float> %v68, %v70
  %v72 = insertelement <16 x float> poison, float %v59, i64 0
  %v73 = shufflevector <16 x float> %v72, <16 x float> poison, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0>
  %v74 = fdiv <16 x float> %v71, %v73
  %v75 = getelementptr float, ptr %p1, i64 %v66
  store <16 x float> %v74, ptr %v75, align 4
  %v76 = add nsw i64 %a63, 16
  br label %for60
end62:
  %v77 = add nsw i64 %a3, 1
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
  call void @sum_div_sub_mul_0(ptr %ctx, i64 0, i64 8)
  ret i32 0
}
