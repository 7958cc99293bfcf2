!0 = !{!"branch_weights", i32 1, i32 2000}


declare i64 @llvm.readcyclecounter()
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()

define internal i1 @poll(ptr %last_at) noinline nounwind {
  %now = call i64 @llvm.readcyclecounter()
  %last = load i64, ptr %last_at, align 8
  %passed = sub i64 %now, %last
  %soon = icmp ult i64 %passed, 100000000
  br i1 %soon, label %go_on, label %look
go_on:
  ret i1 false
look:
  store i64 %now, ptr %last_at, align 8
  %state = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %state)
  %stop = icmp ne i32 %raised, 0
  ret i1 %stop
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
  %left5 = phi i64 [ 131072, %entry ], [ %v26, %on20 ]
  %a4 = phi i64 [ %v1, %entry ], [ %v18, %on20 ]
  %v6 = sub i64 %left5, 1
  %v8 = icmp sgt i64 %a4, 0
  br i1 %v8, label %body7, label %done3
body7:
  %v9 = sub i64 %a4, 3
  %v11 = icmp sgt i64 %v9, 0
  br i1 %v11, label %body10, label %done3
body10:
  %v12 = sub i64 %v9, 3
  %v14 = icmp sgt i64 %v12, 0
  br i1 %v14, label %body13, label %done3
body13:
  %v15 = sub i64 %v12, 3
  %v17 = icmp sgt i64 %v15, 0
  br i1 %v17, label %body16, label %done3
body16:
  %v18 = sub i64 %v15, 3
  %v21 = icmp eq i64 %v6, 0
  br i1 %v21, label %due19, label %on20, !prof !0
due19:
  %v22 = call i1 @poll(ptr %poll_clock)
  br i1 %v22, label %bad23, label %good24, !prof !0
bad23:
  %v25 = getelementptr i64, ptr %status, i64 7
  store i64 -1, ptr %v25, align 8
  ret void
good24:
  br label %on20
on20:
  %v26 = phi i64 [ %v6, %body16 ], [ 131072, %good24 ]
  br label %while2
done3:
  %v27 = phi i64 [ %a4, %while2 ], [ %v9, %body7 ], [ %v12, %body10 ], [ %v15, %body13 ]
  %v28 = getelementptr i64, ptr %p1, i64 0
  store i64 %v27, ptr %v28, align 8
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
