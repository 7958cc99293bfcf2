
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

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

define internal void @gt_0(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %do1 ]
  %i3c = icmp slt i64 %i3, 1
  br i1 %i3c, label %do1, label %end2
do1:
  %v4 = getelementptr i64, ptr %p0, i64 0
  %v5 = load i64, ptr %v4, align 8
  %v6 = icmp sgt i64 %v5, 0
  %v7 = getelementptr i8, ptr %p1, i64 0
  %v8 = zext i1 %v6 to i8
  store i8 %v8, ptr %v7, align 1
  %i3n = add nsw i64 %i3, 1
  br label %for0
end2:
  ret void
}

define internal void @sub_1(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {
entry:
  %p0a = getelementptr ptr, ptr %ctx, i64 0
  %p0 = load ptr, ptr %p0a, align 8
  %p1a = getelementptr ptr, ptr %ctx, i64 1
  %p1 = load ptr, ptr %p1a, align 8
  br label %for0
for0:
  %i3 = phi i64 [ 0, %entry ], [ %i3n, %do1 ]
  %i3c = icmp slt i64 %i3, 1
  br i1 %i3c, label %do1, label %end2
do1:
  %v4 = getelementptr i64, ptr %p0, i64 0
  %v5 = load i64, ptr %v4, align 8
  %v6 = sub i64 %v5, 3
  %v7 = getelementptr i64, ptr %p1, i64 0
  store i64 %v6, ptr %v7, align 8
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
  %slot0 = alloca ptr, align 8
  %slot1 = alloca ptr, align 8
  %poll_clock = alloca i64, align 8
  store i64 0, ptr %poll_clock, align 8
  %left12 = alloca i64, align 8
  store i64 74898, ptr %left12, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %out0, ptr align 1 %in0, i64 8, i1 false)
  store ptr %out0, ptr %slot0, align 8
  store ptr %arena, ptr %slot1, align 8
  br label %while2
while2:
  %t5 = load ptr, ptr %slot0, align 8
  %t6 = getelementptr i8, ptr %arena, i64 64
  %t7 = getelementptr ptr, ptr %ctx, i64 0
  store ptr %t5, ptr %t7, align 8
  %t8 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %t6, ptr %t8, align 8
  call void @gt_0(ptr %ctx, i64 0, i64 1)
  %t9 = getelementptr i8, ptr %arena, i64 64
  %t10 = load i8, ptr %t9, align 1
  %t11 = icmp ne i8 %t10, 0
  br i1 %t11, label %body3, label %done4
body3:
  %t13 = load i64, ptr %left12, align 8
  %t14 = sub i64 %t13, 1
  store i64 %t14, ptr %left12, align 8
  %t17 = icmp eq i64 %t14, 0
  br i1 %t17, label %due15, label %on16
due15:
  store i64 74898, ptr %left12, align 8
  %t18 = call i1 @poll(ptr %poll_clock)
  br i1 %t18, label %fail19, label %fine20
fail19:
  ret i32 -1
fine20:
  br label %on16
on16:
  %t21 = load ptr, ptr %slot0, align 8
  %t22 = load ptr, ptr %slot1, align 8
  %t23 = getelementptr ptr, ptr %ctx, i64 0
  store ptr %t21, ptr %t23, align 8
  %t24 = getelementptr ptr, ptr %ctx, i64 1
  store ptr %t22, ptr %t24, align 8
  call void @sub_1(ptr %ctx, i64 0, i64 1)
  %t25 = load ptr, ptr %slot0, align 8
  %t26 = load ptr, ptr %slot1, align 8
  store ptr %t26, ptr %slot0, align 8
  store ptr %t25, ptr %slot1, align 8
  br label %while2
done4:
  %t29 = load ptr, ptr %slot0, align 8
  %t30 = icmp eq ptr %t29, %out0
  br i1 %t30, label %home28, label %away27
away27:
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %out0, ptr align 1 %t29, i64 8, i1 false)
  br label %home28
home28:
  ret i32 0
}
