!0 = !{!"branch_weights", i32 1, i32 2000}
declare i32 @PyErr_CheckSignals()
declare i32 @PyGILState_Ensure()
declare i64 @llvm.readcyclecounter()
declare void @PyGILState_Release(i32)
define internal i1 @poll(ptr %last_at) noinline nounwind optnone {
entry:
  %v2 = call i64 @llvm.readcyclecounter()
  %v3 = load i64, ptr %last_at
  %v4 = sub i64 %v2, %v3
  %v5 = icmp ult i64 %v4, 100000000
  br i1 %v5, label %go_on0, label %look1
go_on0:
  ret i1 false
look1:
  store i64 %v2, ptr %last_at
  %v6 = call i32 @PyGILState_Ensure()
  %v7 = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %v6)
  %v8 = icmp ne i32 %v7, 0
  ret i1 %v8
}

define internal void @gt_sub_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  %statusa = getelementptr ptr, ptr %ctx, i64 2
  %status = load ptr, ptr %statusa, align 8
  %poll_clock = alloca i64, align 8
  store i64 0, ptr %poll_clock, align 8
  %v0 = getelementptr i64, ptr %p0, i64 0
  %v1 = load i64, ptr %v0, align 8
  br label %while2
while2:
  %a4 = phi i64 [ 131072, %entry ], [ %a22, %on21 ]
  %a5 = phi i64 [ %v1, %entry ], [ %v19, %on21 ]
  %v7 = sub i64 %a4, 1
  %v9 = icmp sgt i64 %a5, 0
  br i1 %v9, label %body8, label %done3
body8:
  %v10 = sub i64 %a5, 3
  %v12 = icmp sgt i64 %v10, 0
  br i1 %v12, label %body11, label %done3
body11:
  %v13 = sub i64 %v10, 3
  %v15 = icmp sgt i64 %v13, 0
  br i1 %v15, label %body14, label %done3
body14:
  %v16 = sub i64 %v13, 3
  %v18 = icmp sgt i64 %v16, 0
  br i1 %v18, label %body17, label %done3
body17:
  %v19 = sub i64 %v16, 3
  %v23 = icmp eq i64 %v7, 0
  br i1 %v23, label %due20, label %on21, !prof !0
due20:
  %v24 = call i1 @poll(ptr %poll_clock)
  br i1 %v24, label %bad25, label %good26, !prof !0
bad25:
  %v27 = getelementptr i64, ptr %status, i64 7
  store i64 -1, ptr %v27
  ret void
good26:
  br label %on21
on21:
  %a22 = phi i64 [ %v7, %body17 ], [ 131072, %good26 ]
  br label %while2
done3:
  %a6 = phi i64 [ %a5, %while2 ], [ %v10, %body8 ], [ %v13, %body11 ], [ %v16, %body14 ]
  %v28 = getelementptr i64, ptr %p1, i64 0
  store i64 %a6, ptr %v28, align 8
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
  %t2 = getelementptr ptr, ptr %ctx, i64 2
  store ptr %status, ptr %t2, align 8
  call void @gt_sub_0(ptr %ctx, i64 0, i64 0)
  %t3 = load i64, ptr %site_at, align 8
  %t4 = icmp ne i64 %t3, 0
  %t5 = trunc i64 %t3 to i32
  br i1 %t4, label %fail6, label %fine7
fail6:
  ret i32 %t5
fine7:
  ret i32 0
}
