#!/usr/bin/env bash
# Builds librdkafka's own rdkafka_performance and rdkafka_example, unchanged, from Debian's source package into the folder FOLDER:
# librdkafka_programs.sh FOLDER. They are linked with the installed librdkafka; only the headers beside them need a config.h.
set -euo pipefail
folder=$1
mkdir -p "$folder/lists/partial"
cd "$folder"
sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > sources.sources
apt=(apt-get -qq -o "Dir::Etc::SourceList=$folder/sources.sources" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$folder/lists")
"${apt[@]}" update
"${apt[@]}" source --download-only librdkafka 2> /dev/null
mkdir -p source
tar xzf librdkafka_*.orig.tar.gz --strip-components 1 -C source
cat > source/config.h <<'CONFIG'
#pragma once
#define HAVE_STRNDUP 1
#define WITH_C11THREADS 1
#define HAVE_ATOMICS_32 1
#define HAVE_ATOMICS_64 1
#define ATOMIC_OP(OP1, OP2, PTR, VAL) __atomic_##OP1##_##OP2(PTR, VAL, __ATOMIC_SEQ_CST)
#define ATOMIC_OP32 ATOMIC_OP
#define ATOMIC_OP64 ATOMIC_OP
CONFIG
for program in rdkafka_performance rdkafka_example; do
  gcc -w -O1 -D_GNU_SOURCE -I/usr/include/librdkafka -idirafter source/src "source/examples/$program.c" -o "$program" -lrdkafka -lpthread -lm
done
