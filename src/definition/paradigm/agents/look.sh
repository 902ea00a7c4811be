look() {
  git rev-parse --git-dir > /dev/null 2>&1 && mkdir -p "$LL_RUN_DIR/objects" || return 1
  cp -p "$(git rev-parse --git-path index)" "$LL_RUN_DIR/index" 2> /dev/null
  GIT_ALTERNATE_OBJECT_DIRECTORIES=$(cd "$(git rev-parse --git-path objects)" && pwd)
  export GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_OBJECT_DIRECTORY="$LL_RUN_DIR/objects" GIT_INDEX_FILE="$LL_RUN_DIR/index"
  git add -A -- . ${LL_RECORDING:+":(exclude)$LL_RECORDING"} > /dev/null 2>&1 && git write-tree
}
