#!/bin/sh
# A probe on a machine that is busy: each answer takes some times as long as its work.
while [ -n "$(head -c 1)" ]; do
    sleep 0.01
    printf x
done
