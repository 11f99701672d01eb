#!/bin/sh
# install.sh: makes this machine a server of the Signalbox service that the script comes from, with systemd.
#
# Running it again upgrades the agent; without an option its setting stays as it was.
# For packagers: SIGNALBOX_ROOT=/absolute/directory puts every file below that directory, makes no user and starts nothing.
#
# Nothing runs before the last line, so that a truncated download does nothing.
set -eu
LC_ALL=C
export LC_ALL

usage() {
  cat <<'END'
install.sh [OPTION VALUE]...
  --key KEY             the agent's key; others may see it among the processes: prefer SIGNALBOX_AGENT_KEY or
  --key-file FILE       a file that holds it
  --enrol TOKEN         in place of a key: make this machine a server with the token of an enrolment; prefer
                        SIGNALBOX_ENROLMENT_TOKEN or
  --enrol-file FILE     a file that holds the token
  --name NAME           the server's name, where it is not the host name; with an enrolment, or for those who sign
  --commands on|signed|off  whether the service may run commands (off)
  --docker off|read|signed|control  what it may do with containers (read; with commands or a terminal: off)
  --logs on|off         whether it may read the system's log, and the files of --log-path (off)
  --log-path PATH       a file, or a directory of files, that may be read; repeatable
  --terminal on|signed|off  whether it may open a terminal (off)
  --signers WHO         whose signatures count for what is "signed"; adds their keys; repeatable. WHO is
                          FILE       public keys, or lines in the format of OpenSSH's allowed_signers; a name with
                                     a = in it needs a path, as in ./a=b.pub, and none has a space
                          https://.. the same, at an address of your own, never the service's
                          KEY        one such line, as in "ssh-ed25519 AAAA... ada@example.org"
                        A key needs the name of its owner: a comment of one word, or NAME= before WHO, as in
                        ada=https://github.com/ada.keys. To remove keys, edit /etc/signalbox-agent/allowed_signers.
  --approvals N         how many different people have to sign, 1 to 10 (1)
  --allow LINE          a command that runs without a signature, without a shell; a word * is any one word that does
                        not begin with -; repeatable; replaces the list of the policy: --allow 'systemctl restart nginx'
  --updates off|signed  whether the agent takes newer builds of itself, if they are signed (off)
  --release-signers WHO  whose signatures count for builds; WHO as with --signers; repeatable. The keys are added to
                        /etc/signalbox-agent/release_signers
  --record on|off       whether terminals are recorded, on this machine (off)
  --processes on|off    whether the agent tells which processes use the most (on)
  --interval SECONDS    between two samples, 0.5 to 3600 (5)
  --ca-file FILE        trust the certificate authorities of this PEM file and no others
  --url URL             the service's address, where it is not the one that this script came from
  --uninstall           remove the agent and all its files
END
}

# die SENTENCE: ends with this one line.
die() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

# say SENTENCE: a note for the end.
say() {
  notes="$notes${notes:+
}note: $1"
}

have() {
  command -v "$1" >/dev/null 2>&1
}

# --- The options. No value reaches a file unless it has the expected form.

parse() {
  key='' key_file='' token='' token_file='' asked_name='' url='' interval='' ca_file='' uninstall='' log_paths='' by_hand=''
  signers='' approvals='' allowed='' record='' updates='' release_signers=''
  processes='' commands='' docker='' logs='' terminal=''
  while [ $# -gt 0 ]; do
    case $1 in
      --?*=*)
        option=${1%%=*} value=${1#*=}
        shift
        set -- "$option" "$value" "$@"
        ;;
      --uninstall)
        uninstall=1
        shift
        continue
        ;;
      -h | --help)
        usage
        exit 0
        ;;
      --key | --key-file | --commands | --docker | --logs | --log-path | --terminal | --processes) ;;
      --approvals | --allow | --record | --updates | --release-signers) ;;
      --signers | --interval | --ca-file | --url | --enrol | --enrol-file | --name) ;;
      -*) die "there is no option ${1%%[!a-z-]*}; --help lists those that there are" ;;
      # It may be a key or a token, so it is not repeated.
      *) die "an argument belongs to no option; --help lists those that there are" ;;
    esac
    [ $# -ge 2 ] || die "$1 needs a value"
    take "$1" "$2"
    shift 2
  done
  signed=$signers$approvals$allowed$release_signers
  if asks_for_signatures || [ "$updates" = signed ]; then signed=1; fi
}

# take OPTION VALUE
take() {
  case $1 in
    --key) key=$2 key_file='' ;;
    --key-file) key_file=$2 key='' ;;
    --enrol) token=$2 token_file='' ;;
    --enrol-file) token_file=$2 token='' ;;
    --name) check_name "$2" && asked_name=$2 ;;
    --docker) one_of "$1" "$2" off read signed control && docker=$2 ;;
    --commands) one_of "$1" "$2" off signed on && commands=$2 ;;
    --logs) one_of "$1" "$2" off on && logs=$2 ;;
    --terminal) one_of "$1" "$2" off signed on && terminal=$2 ;;
    --signers) check_signers "$1" "$2" && signers="$signers$2$newline" ;;
    --release-signers) check_signers "$1" "$2" && release_signers="$release_signers$2$newline" ;;
    --updates) one_of "$1" "$2" off signed && updates=$2 ;;
    --approvals) check_approvals "$2" && approvals=$2 ;;
    --allow) check_allowed "$2" && allowed="$allowed${allowed:+, }\"$2\"" ;;
    --record) one_of "$1" "$2" off on && record=$2 ;;
    --processes) one_of "$1" "$2" off on && processes=$2 ;;
    --log-path) check_path "$2" && log_paths="$log_paths${log_paths:+, }\"$2\"" ;;
    --interval) check_interval "$2" && interval=$2 ;;
    --ca-file) ca_file=$2 ;;
    --url) check_url "$2" && url=${2%/} ;;
    # An option without a value came as OPTION=VALUE.
    *) die "there is no option ${1%%[!a-z-]*} with a value; --help lists those that there are" ;;
  esac
  case $1:$2 in
    # The agent has no flags for these.
    --signers:* | --release-signers:* | --updates:* | --approvals:* | --allow:* | --commands:signed | --docker:signed | --terminal:signed) ;;
    --key:* | --key-file:* | --ca-file:* | --url:* | --enrol:* | --enrol-file:* | --name:*) ;;
    *) by_hand="$by_hand $1 $2" ;;
  esac
}

# one_of OPTION VALUE CHOICE...
one_of() {
  option=$1 value=$2
  shift 2
  for choice in "$@"; do
    if [ "$value" = "$choice" ]; then return 0; fi
  done
  die "$option must be one of: $*"
}

check_path() {
  case $1 in
    *[!A-Za-z0-9._/@:+,=~-]*) die "--log-path takes letters, digits and ._/@:+,=~- only; put other paths into $etc/policy.toml" ;;
    /*) ;;
    *) die "--log-path must be an absolute path" ;;
  esac
}

# As many as the agent takes.
check_approvals() {
  case $1 in
    [1-9] | 10) return 0 ;;
  esac
  die "--approvals must be a number from 1 to 10"
}

# check_allowed LINE: what neither TOML nor sed reads as more than text, and the agent as words.
check_allowed() {
  case $1 in
    *[!A-Za-z0-9\ ._/@:+,=%*~-]*) die "--allow takes letters, digits, blanks and ._/@:+,=%*~- only: there is no shell; put other commands into $etc/policy.toml" ;;
    '' | ' '* | *' ') die "--allow takes a command, without a blank at its ends" ;;
  esac
  # The pattern is no list of files.
  set -f
  for word in $1; do
    case $word in
      '*') ;;
      *'*'*) die "--allow: a * stands for one whole word, so it cannot be a part of $word" ;;
    esac
  done
  set +f
  case $1 in
    '*'*) die "--allow names the program: a * in its place would run any" ;;
  esac
}

check_interval() {
  case $1 in
    *[!0-9.]* | *.*.* | '' | .* | *. | ?????????*) ;;
    3600 | 0.[5-9]* | [1-9] | [1-9].* | [1-9][0-9] | [1-9][0-9].* | [1-9][0-9][0-9] | [1-9][0-9][0-9].*) return 0 ;;
    [12][0-9][0-9][0-9] | [12][0-9][0-9][0-9].* | 3[0-5][0-9][0-9] | 3[0-5][0-9][0-9].*) return 0 ;;
  esac
  die "--interval must be between 0.5 and 3600 seconds"
}

check_url() {
  case $1 in
    *[!][A-Za-z0-9._~%:/-]*) ;;
    http://?* | https://?*) return 0 ;;
  esac
  die "--url must be an address such as https://box.example.com"
}

check_key() {
  case $1 in
    *[!A-Za-z0-9_-]*) ;;
    sbk_????????????????_*) if [ "${#1}" -eq 64 ]; then return 0; fi ;;
  esac
  die "this is no agent's key: one begins with sbk_ and has 64 characters"
}

check_token() {
  case $1 in
    *[!A-Za-z0-9_-]*) ;;
    sbe_????????????????_*) if [ "${#1}" -eq 64 ]; then return 0; fi ;;
  esac
  die "this is no token of an enrolment: one begins with sbe_ and has 64 characters"
}

check_name() {
  case $1 in
    '' | [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) die "--name takes letters, digits and ._- only, the first a letter or a digit" ;;
  esac
}

# The token of an enrolment from any of its sources; none where a key is in place already.
find_token() {
  if [ -n "$token_file" ]; then
    token=$(cat -- "$token_file" 2>/dev/null) || die "--enrol-file $token_file cannot be read"
    check_token "$token"
  elif [ -n "$token" ]; then
    check_token "$token"
  elif [ -n "$environment_token" ]; then
    token=$environment_token
    check_token "$token"
  fi
  if [ -z "$token" ]; then
    [ -z "$asked_name" ] || [ -n "$signed" ] || [ -f "$root$etc/key" ] ||
      die "--name is for an enrolment, or for those who sign: use --enrol or --signers, too"
    return 0
  fi
  [ -z "$key$key_file$environment_key" ] || die "a key and the token of an enrolment are given: use one of them"
  if [ -f "$root$etc/key" ]; then
    token=''
    say "this machine has a key already, so it was not enrolled again; --uninstall first makes it another server"
  fi
}

# The key from any of its sources; none where one is in place already, or comes with the enrolment.
find_key() {
  find_token
  if [ -n "$token" ]; then return 0; fi
  if [ -n "$key_file" ]; then
    key=$(cat -- "$key_file" 2>/dev/null) || die "--key-file $key_file cannot be read"
    check_key "$key"
  elif [ -n "$key" ]; then
    check_key "$key"
  elif [ -n "$environment_key" ]; then
    key=$environment_key
    check_key "$key"
  elif [ ! -f "$root$etc/key" ]; then
    die "no key is given: use --key, --key-file or SIGNALBOX_AGENT_KEY, or enrol this machine with --enrol"
  fi
}

# The source of the program, and the service that the agent connects to.
find_service() {
  in_place=''
  if [ -f "$root$etc/agent.env" ]; then
    in_place=$(value_of "$root$etc/agent.env" SIGNALBOX_AGENT_URL)
  fi
  source_url=${url:-$service_url}
  case $source_url in
    # The script as it lies in the repository.
    @*) source_url=$in_place ;;
  esac
  [ -n "$source_url" ] || die "--url is needed: this script came from no service"
  check_url "$source_url"
  agent_url=$source_url
  # A key is for the service that created it: another service gets it only when the options name it.
  if [ -z "$key$token" ] && [ -z "$url" ] && [ -n "$in_place" ]; then
    agent_url=$in_place
  fi
  if [ -z "$ca_file" ] && [ "$source_url" = "$in_place" ] && [ -f "$root$etc/ca.pem" ]; then
    ca_file=$root$etc/ca.pem
  fi
  if [ -n "$ca_file" ]; then
    [ -r "$ca_file" ] || die "--ca-file $ca_file cannot be read"
    grep -q 'BEGIN CERTIFICATE' -- "$ca_file" 2>/dev/null || die "--ca-file $ca_file holds no certificate in PEM"
  fi
}

# --- The signers. Only this command line names them: a service that an attacker has taken over must not add any.

# The two lists: who signs commands, and who signs builds of the agent. Each function below works on the one that was named last.
use_signers() {
  option=--signers policy_word=signers listed=$signers list_file=$signers_file all=${stage:-}/all purpose=''
}

use_release_signers() {
  option=--release-signers policy_word=release_signers listed=$release_signers list_file=$release_file
  all=${stage:-}/all-releases purpose=--releases
}

# check_signers OPTION WHO: what can be said before anything is read.
check_signers() {
  case $2 in
    '') die "$1 needs a value: a file, an https address, or a public key" ;;
    *"PRIVATE KEY"* | PuTTY-User-Key-File*) die "$1 was given a private key: use the public one, whose file ends in .pub; nothing was stored" ;;
    *[[:cntrl:]]*) die "$1 takes one line; put several keys into a file, or repeat the option" ;;
  esac
}

# split WHO: sets the name before it, if there is one, the rest, and what that is. By its form alone: a file with the name of an address
# must not take its place.
split() {
  called='' who=$1
  case ${who%%=*} in
    "$who" | '' | *[!A-Za-z0-9._@+-]*) ;;
    *) called=${who%%=*} who=${who#*=} ;;
  esac
  case $who in
    *[[:blank:]]*) form=line ;;
    *://*) form=address ;;
    *) form=file ;;
  esac
}

# host_of URL: its host in lower case, without port and final dot.
host_of() {
  printf '%s\n' "$1" | tr '[:upper:]' '[:lower:]' | sed -e 's|^[a-z]*://||' -e 's|[/?#].*||' -e 's|:[0-9]*$||' -e 's|\.$||'
}

# check_origins: no address of a list is the service's own.
check_origins() {
  while IFS= read -r asked; do
    [ -n "$asked" ] || continue
    split "$asked"
    case $form:$who in
      line:/* | line:./* | line:../* | line:'~'*) die "$option takes no file with a space in its path: give it another name" ;;
      line:*) ;;
      address:*) check_origin "$who" ;;
      *)
        if [ -e "$who" ]; then continue; fi
        [ ! -e "$asked" ] || die "$option $asked: what is before the = is a name; to read this file, write ./$asked"
        case $who in
          /* | ./* | ../* | '~'*) die "$option $who: there is no such file" ;;
          *) die "$option takes a file that exists, an https address, or a public key; one of its values is none of these" ;;
        esac
        ;;
    esac
  done <<END
$listed
END
}

# check_origin URL
check_origin() {
  insecure="$option takes an https address: without TLS, anybody on the way can name signers"
  case $1 in
    *[!][A-Za-z0-9._~%:/?=\&,+-]*) die "the address of $option has a character that none may have, such as @ or a space" ;;
  esac
  host=$(host_of "$1")
  case $host in
    '' | *%*) die "the address of $option names no host" ;;
  esac
  case $1:$host in
    https://*) ;;
    http://*:127.*[!0-9.]*) die "$insecure" ;;
    http://*:localhost | http://*:127.* | http://*:'[::1]') ;;
    *) die "$insecure" ;;
  esac
  for service in "$service_url" "$source_url" "$agent_url" "$in_place"; do
    if [ "$host" = "$(host_of "$service")" ]; then
      die "$option names an address of the service itself ($host), and a service must not say whose signatures count: give a file, a key or an address of your own"
    fi
  done
}

# gather_signers: reads, checks and shows all of them, before any file is changed.
gather_signers() {
  : >"$all"
  : >"$stage/there"
  if [ -z "$listed" ]; then return 0; fi
  find_signers_in_place
  list_keys
  : >"$stage/added"
  : >"$stage/unlike"
  while IFS= read -r asked; do
    [ -n "$asked" ] || continue
    split "$asked"
    read_signers
    name_signers
    list_signers "$stage/lines" "$called_by"
    add_signers
  done <<END
$listed
END
  cat "$stage/there" >"$all"
  if [ -n "$(tail -c 1 "$all")" ]; then echo >>"$all"; fi
  cat "$stage/added" >>"$all"
  list_signers "$all" "$list_file with the keys of $option"
  # It may hold nothing but comments.
  if "$stage/agent" check-signers $purpose "$stage/there" >"$stage/shown" 2>/dev/null; then
    echo "signers that are in $list_file already, and stay:"
    sed 's/^/  /' "$stage/shown"
  fi
  if [ -s "$stage/added" ]; then
    list_signers "$stage/added" "$option"
    echo "signers that are added to $list_file:"
    sed 's/^/  /' "$stage/shown"
  elif [ -s "$stage/unlike" ]; then
    echo 'no signer is added'
  else
    echo 'no signer is added: all keys are there'
  fi
  cat "$stage/unlike"
}

# find_signers_in_place: what the file holds, if nobody but root can have written it.
find_signers_in_place() {
  file=$root$list_file
  if [ -f "$root$etc/policy.toml" ]; then
    elsewhere=$(value_of "$root$etc/policy.toml" "$policy_word")
    case $elsewhere in
      '' | "$list_file") ;;
      *) die "the policy names another file of signers, $elsewhere: add the keys there, without $option; no file was changed" ;;
    esac
  fi
  if [ -h "$file" ]; then die "$list_file is a link: change the file that it names, without $option; no file was changed"; fi
  if [ ! -e "$file" ]; then return 0; fi
  [ -f "$file" ] || die "$list_file is no regular file; no file was changed"
  # The user by number, and who may write: busybox has no stat with formats everywhere.
  read -r mode _ owner _ <<END
$(ls -ldn "$file")
END
  case $mode in
    ?????w* | ????????w*) owner=others ;;
  esac
  [ "$owner" = "$(id -u)" ] ||
    die "others than root can have changed $list_file: check its lines, then chown root:root and chmod 0644 it; no file was changed"
  cat "$file" >"$stage/there"
}

# read_signers: the text of one value of the option, into a file. Sets what messages call it.
read_signers() {
  case $form in
    line)
      called_by="the value of $option"
      printf '%s\n' "$who" >"$stage/list"
      ;;
    address)
      called_by="the list at $(host_of "$who")"
      fetch_signers "$who"
      ;;
    file)
      called_by="$option $who"
      [ -f "$who" ] || die "$called_by is no regular file; no file was changed"
      # One byte more than the agent reads.
      head -c 1048577 -- "$who" >"$stage/list" 2>/dev/null || die "$called_by cannot be read; no file was changed"
      ;;
  esac
  [ "$(wc -c <"$stage/list")" -le 1048576 ] || die "$called_by is longer than 1 MiB; no file was changed"
  if grep -q -e 'PRIVATE KEY' -e '^PuTTY-User-Key-File' "$stage/list"; then
    die "$called_by is a private key: use the public one, whose file ends in .pub; no file was changed"
  fi
}

# fetch_signers URL: without redirects, which could lead to the service, with the system's certificate authorities, and without the
# user's settings for curl and wget, which could change both.
fetch_signers() {
  : >"$stage/said"
  : >"$stage/head"
  rm -f "$stage/failed"
  # One byte more than the agent reads, also of a list without end.
  if have curl; then
    {
      curl -q -sS --globoff --proto '=https,http' --max-redirs 0 --connect-timeout 15 --max-time 60 \
        -D "$stage/head" -- "$1" 2>"$stage/said" || : >"$stage/failed"
    } | head -c 1048577 >"$stage/list"
  elif wget --version 2>/dev/null | grep -q '^GNU Wget'; then
    no_config=''
    if wget --help 2>/dev/null | grep -q -e --no-config; then no_config=--no-config; fi
    {
      WGETRC=/dev/null wget $no_config -nv -S -t 1 -T 60 --max-redirect=0 -O - -- "$1" 2>"$stage/said" || : >"$stage/failed"
    } | head -c 1048577 >"$stage/list"
    cat "$stage/said" >"$stage/head"
  else
    die "curl or GNU wget is needed for an address of signers; no file was changed"
  fi
  # Who reads the list says that it is too long.
  if [ "$(wc -c <"$stage/list")" -gt 1048576 ]; then return 0; fi
  status=$(status_in "$stage/head")
  if [ "$status" = 200 ] && [ -e "$stage/failed" ]; then
    die "$called_by was not transferred as a whole: run this again; no file was changed"
  fi
  case $status in
    200) ;;
    3??) die "$called_by is elsewhere now (status $status): give the address that it redirects to; no file was changed" ;;
    '' | 000) die "$called_by cannot be downloaded: $(plain <"$stage/said"); no file was changed" ;;
    *) die "$called_by cannot be downloaded (status $status); no file was changed" ;;
  esac
}

# status_in FILE: of the last answer, after those of proxies.
status_in() {
  sed -n 's|^ *HTTP/[0-9.]* \([0-9][0-9][0-9]\).*|\1|p' "$1" | tail -n 1
}

# plain: the last line of the standard input, which may come from elsewhere and must not control a terminal.
plain() {
  tail -n 1 | sed 's/[^ -~]//g'
}

# name_signers: puts the name of its owner before each key that has none.
name_signers() {
  : >"$stage/named"
  : >"$stage/lines"
  number=0
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    line=${line%"$return"}
    read -r first second third rest <<END
$line
END
    case $first in
      '' | '#'*)
        # So that the agent counts as this does.
        echo >>"$stage/lines"
        continue
        ;;
    esac
    at="line $number of $called_by"
    if is_kind "$first"; then
      name=$called
      # After a passkey stands its host name.
      if [ -z "$name" ] && [ -z "$rest" ] && [ "$first" != sk-webauthn ]; then name=$third; fi
      case $name in
        '' | *[!A-Za-z0-9._@+-]*) die "$at says not whose key it is: put NAME= before the value of $option, with the name of a person; no file was changed" ;;
      esac
      if [ "$first" = sk-webauthn ]; then second="$second $third"; fi
      line="$name $first $second"
    elif [ -n "$called" ]; then
      die "$at is no key without a name, and $called= is for such keys; no file was changed"
    fi
    # Whatever else it is, such as a password, it is not repeated.
    find_key_of "$line" || die "$at is no public key and no line of allowed signers; no file was changed"
    printf '%s\n' "$line" >>"$stage/lines"
    printf '%s %s\n' "$blob" "$line" >>"$stage/named"
  done <"$stage/list"
  [ -s "$stage/named" ] || die "$called_by names no signer; no file was changed"
}

# is_kind WORD: whether it is a type of key that an agent knows.
is_kind() {
  case $1 in
    ssh-ed25519 | ssh-rsa | ecdsa-sha2-nistp256 | ecdsa-sha2-nistp384 | ecdsa-sha2-nistp521) ;;
    sk-ssh-ed25519@openssh.com | sk-ecdsa-sha2-nistp256@openssh.com | sk-webauthn) ;;
    *) return 1 ;;
  esac
}

# find_key_of LINE: sets the key in base64, which is the word after its type.
find_key_of() {
  more=$1 blob=''
  while [ -n "$more" ]; do
    read -r word more <<END
$more
END
    if is_kind "$word"; then
      read -r blob _ <<END
$more
END
      case $blob in
        '' | *[!A-Za-z0-9+/=_-]*) return 1 ;;
      esac
      return 0
    fi
  done
  return 1
}

# add_signers: those whose key is neither in the file nor added yet. Notes where another line with the key says something else.
add_signers() {
  while read -r blob line; do
    there=$(grep "^$blob " "$stage/known" | head -n 1)
    if [ -z "$there" ]; then
      printf '%s\n' "$line" >>"$stage/added"
      printf '%s %s\n' "$blob" "$line" >>"$stage/known"
      continue
    fi
    asked_words=$(before_key "$line") there_words=$(before_key "${there#* }")
    if [ "${asked_words%% *}" != "${there_words%% *}" ]; then
      printf 'not added: the key of %s is there already, under the name %s; edit that line to change it\n' "${asked_words%% *}" "${there_words%% *}"
    elif [ "$asked_words" != "$there_words" ]; then
      printf 'not added: the key of %s is there already, with other options; edit that line to change them\n' "${asked_words%% *}"
    fi >>"$stage/unlike"
  done <"$stage/named"
}

# before_key LINE: its name, options and type, with one space between them.
before_key() {
  printf '%s\n' "${1%%"$blob"*}" | sed -e 's/[[:space:]][[:space:]]*/ /g' -e 's/^ //' -e 's/ $//' | plain
}

# list_keys: the lines of the file in place, each after its key. What is no line of a signer, the agent names later.
list_keys() {
  while IFS= read -r line || [ -n "$line" ]; do
    line=${line%"$return"}
    case $line in
      *[![:space:]]*) ;;
      *) continue ;;
    esac
    read -r first _ <<END
$line
END
    case $first in
      '#'*) continue ;;
    esac
    if find_key_of "$line"; then printf '%s %s\n' "$blob" "$line"; fi
  done <"$stage/there" >"$stage/known"
}

# list_signers FILE WHAT: name, type and fingerprint of each key, from the agent, which reads the file as it will at its start.
list_signers() {
  if ! "$stage/agent" check-signers $purpose "$1" >"$stage/shown" 2>"$stage/said"; then
    # What it quotes may come from elsewhere, and must not control a terminal.
    said=$(plain <"$stage/said")
    case $said in
      "signalbox-agent: un"*"'check-signers'"* | "signalbox-agent: un"*"'--releases'"*) die "the service's agent cannot check signers: it is too old; no file was changed" ;;
    esac
    said=${said#*"$1"}
    said=${said#:}
    die "$2 cannot be used: ${said# }; no file was changed"
  fi
  [ -s "$stage/shown" ] || die "the service's agent cannot check signers: it is too old; no file was changed"
}

# --- The machine.

find_platform() {
  [ "$(uname -s)" = Linux ] || die "the agent runs on Linux, and this is $(uname -s)"
  machine=$(uname -m)
  case $machine in
    x86_64 | amd64) arch=x86_64 ;;
    aarch64 | arm64) arch=aarch64 ;;
    armv7* | armv8l) arch=armv7 ;;
    i[3-6]86) arch=i686 ;;
    '' | *[!a-z0-9_]*) die "the architecture of this machine is unknown" ;;
    *) arch=$machine ;;
  esac
  # A 64-bit kernel may run a 32-bit system, as on a Raspberry Pi, and that has no C library for a 64-bit agent.
  kernel=$arch
  if [ "$(getconf LONG_BIT 2>/dev/null)" = 32 ]; then
    case $arch in
      aarch64) arch=armv7 ;;
      x86_64) arch=i686 ;;
    esac
  fi
  why=''
  if [ "$arch" != "$kernel" ]; then why=", which this 32-bit system on a kernel for $kernel needs"; fi
  program=signalbox-agent-linux-$arch
}

# refuse WHY: where the agent cannot be installed, it can still be run by hand.
refuse() {
  cat >&2 <<END
install.sh: $1. To run the agent by hand instead, with its key in the file agent.key:
  curl -fsSL -o signalbox-agent $source_url/install/$program && chmod +x signalbox-agent
  ./signalbox-agent --url $agent_url --key-file agent.key$by_hand
END
  exit 1
}

check_machine() {
  if [ -n "$root" ]; then return 0; fi
  [ "$(id -u)" = 0 ] || refuse 'only root can install the agent as a service: pipe the script into "sudo sh -s --"'
  if [ ! -d /run/systemd/system ] || ! have systemctl; then refuse 'this machine does not run systemd'; fi
  for needed in useradd usermod gpasswd getent; do
    have "$needed" || die "this machine has no $needed"
  done
}

# lock: two concurrent runs would remove each other's files. It is held until this one ends, and leaves nothing.
lock() {
  mkdir -p "$root/usr/local/bin" || die "cannot write to $root/usr/local/bin"
  if have flock; then
    exec 9<"$root/usr/local/bin"
    # 1 where another run holds it; a file system without locks returns another code.
    flock -n 9 2>/dev/null || [ $? -ne 1 ] || die "another run of this script is at work; nothing was changed"
  fi
}

# --- The program, verified before anything is touched.

download() {
  # In its destination's directory, so that only a rename is left, which happens completely or not at all.
  stage=$(mktemp -d "$root$stages.XXXXXX") || die "cannot write to $root/usr/local/bin"
  trap clean_up EXIT
  trap 'exit 1' HUP INT TERM
  fetch_checksum
  fetch_agent
  # Where two instances of the service have answered, their agents may differ.
  [ "$actual" = "$expected" ] || fetch_agent
  [ "$actual" = "$expected" ] || fetch_checksum
  [ "$actual" = "$expected" ] || die "the download is damaged: its SHA-256 is $actual and should be $expected; nothing was changed"
  chmod 0755 "$stage/agent"
  "$stage/agent" --version >/dev/null 2>&1 || die "the service's agent for linux-$arch does not run on this machine; nothing was changed"
}

fetch_checksum() {
  fetch "$source_url/install/$program.sha256" "$stage/sha256"
  expected=$(cut -c 1-64 <"$stage/sha256")
  case $expected in
    *[!0-9a-f]*) expected='' ;;
  esac
  [ "${#expected}" -eq 64 ] || die "what $source_url/install/$program.sha256 answers is no checksum; nothing was changed"
}

fetch_agent() {
  fetch "$source_url/install/$program" "$stage/agent"
  actual=$(sha256sum <"$stage/agent" | cut -c 1-64)
}

# no_agent: ends where the service has no program for this machine. Releases contain what scripts/dist builds.
no_agent() {
  built='releases have agents for x86_64, aarch64, armv7 and riscv64'
  die "the service has no agent for linux-$arch$why; $source_url/install lists those that it has ($built)"
}

# fetch URL FILE
fetch() {
  # Not every curl makes a file of an empty answer.
  : >"$2"
  if have curl; then
    said=$(curl -fsSL --globoff --connect-timeout 15 --speed-limit 1 --speed-time 60 --retry 3 \
      ${ca_file:+--cacert "$ca_file"} -o "$2" -- "$1" 2>&1) && return 0
  elif have wget; then
    said=$(wget -nv -T 60 ${ca_file:+--ca-certificate="$ca_file"} -O "$2" -- "$1" 2>&1) && return 0
  else
    die "curl or wget is needed"
  fi
  # In the words of curl, of wget, and of the wget of busybox.
  case $said in
    *'error: 404'* | *'ERROR 404'* | *'error: HTTP/1.'[01]' 404'*) no_agent ;;
  esac
  said=$(printf '%s\n' "$said" | plain)
  die "cannot download $1${said:+: $said}; nothing was changed"
}

# --- The enrolment, once everything else is known to work.

# enrol: makes this machine a server of the service, which answers with a key of its own.
enrol() {
  if [ -z "$token" ]; then return 0; fi
  hostname=${asked_name:-$(uname -n)}
  case $hostname in
    '' | [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) die "the host name of this machine cannot name a server: give it a name with --name; nothing was changed" ;;
  esac
  find_request_id
  printf '{"hostname":"%s","request_id":"%s"}' "$hostname" "$request_id" >"$stage/request"
  for pause in 2 4 8 16 0; do
    post "$source_url/api/v1/enrol"
    case $status in
      201) break ;;
      # Nobody knows whether it was done: the same request again makes no second server.
      '' | 000 | 429 | 5??) sleep "$pause" ;;
      *)
        forget_request_id
        detail=$(sed -n -e 's/.*"detail":"\([^"]*\)".*/\1/p' -e 's/.*"msg":"\([^"]*\)".*/\1/p' "$stage/answer" | head -n 1 | plain)
        die "the service did not enrol this machine (status $status)${detail:+: $detail}"
        ;;
    esac
  done
  if [ "$status" != 201 ]; then
    said=$(plain <"$stage/said")
    die "cannot enrol at $source_url${said:+: $said}; run this again, which makes no second server"
  fi
  key=$(sed -n 's/.*"key":"\(sbk_[A-Za-z0-9_-]*\)".*/\1/p' "$stage/answer")
  check_key "$key"
  server_name=$(sed -n 's/.*"name":"\([A-Za-z0-9._-]*\)".*/\1/p' "$stage/answer")
  say "this machine is the server $server_name"
  decode_policy
}

# find_request_id: the number of this machine's request, which is kept until there is a key.
find_request_id() {
  request_id=''
  if [ -f "$root$request" ]; then request_id=$(cat "$root$request"); fi
  case $request_id in
    *[!0-9a-f]*) request_id='' ;;
  esac
  if [ "${#request_id}" -ne 32 ]; then
    request_id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    [ "${#request_id}" -eq 32 ] || die "this machine gave no random number; nothing was changed"
    mkdir -p "$root$etc" || die "cannot write to $root$etc"
    chmod 0755 "$root$etc"
    (umask 077 && printf '%s\n' "$request_id" >"$root$request") || die "cannot write $root$request"
  fi
}

forget_request_id() {
  rm -f "$root$request"
  rmdir "$root$etc" 2>/dev/null || :
}

# post URL: sends the request with the token, which is in no list of processes. Sets the status, and leaves the answer beside it.
post() {
  : >"$stage/answer"
  : >"$stage/said"
  status='' failed=''
  if have curl; then
    status=$(printf 'header = "Authorization: Bearer %s"\n' "$token" | curl -K - -sS --globoff --connect-timeout 15 --max-time 60 \
      ${ca_file:+--cacert "$ca_file"} -H 'Content-Type: application/json' --data-binary "@$stage/request" \
      -o "$stage/answer" -w '%{http_code}' -- "$1" 2>"$stage/said") || status=''
  elif wget --version 2>/dev/null | grep -q '^GNU Wget'; then
    (umask 077 && printf 'header = Authorization: Bearer %s\nheader = Content-Type: application/json\n' "$token" >"$stage/wgetrc")
    WGETRC=$stage/wgetrc wget -nv -S -t 1 -T 60 --content-on-error ${ca_file:+--ca-certificate="$ca_file"} \
      --post-file "$stage/request" -O "$stage/answer" -- "$1" 2>"$stage/said" || failed=1
    rm -f "$stage/wgetrc"
    status=$(status_in "$stage/said")
    # A part of an answer is none; refusals end wget with a code of their own.
    if [ "$status" = 201 ] && [ -n "$failed" ]; then
      status=''
      echo 'the answer was cut' >"$stage/said"
    fi
  else
    die "curl or GNU wget is needed to enrol: others show the token to everybody on this machine; nothing was changed"
  fi
}

# decode_policy: the text of the policy, out of its JSON. The service lets no control characters in but these two.
decode_policy() {
  mark=$(printf '\001') tab=$(printf '\t')
  # What may not be there becomes a backslash, which is refused below.
  sed -n 's/.*"policy":"\([^"\\]*\(\\.[^"\\]*\)*\)".*/\1/p' "$stage/answer" |
    sed -e "s/\\\\\\\\/$mark/g" -e "s/\\\\t/$tab/g" -e 's/\\"/"/g' -e 's/\\n/\
/g' | tr -c '\n\t\040-\176\200-\377' '\134' >"$stage/enrolled.toml"
  # The service refuses to keep such a policy, unless an attacker has changed it.
  if grep -Eq "^[[:space:]]*[\"']?(name|signers|approvals|allow|updates|release_signers)[\"']?[[:space:]]*=|=[[:space:]]*[\"']signed" "$stage/enrolled.toml"; then
    die "the service sent a policy about signatures or updates, and only this machine may say whose signatures count: find out who changed the enrolment; the agent was not installed"
  fi
  check_enrolled
  if [ -n "$signed" ] && [ -s "$stage/enrolled.toml" ]; then
    say "the policy of the enrolment was not written: where signatures count, the service decides nothing; use the options"
  fi
}

# check_enrolled: refuses what TOML allows and the functions below would read in another way than the agent: a word in another spelling,
# a line that is part of a text. Without these, each line with a bare word and = is what it seems to be.
check_enrolled() {
  string="(\"[^\"]*\"|'[^']*')"
  end='[[:blank:]]*(#.*)?$'
  if grep -q -e '\\' -e '"""' -e "'''" "$stage/enrolled.toml" ||
    grep -Evq "^[[:blank:]]*([A-Za-z0-9_-]+[[:blank:]]*=[[:blank:]]*($string|[[].*)$end|($string[[:blank:]]*,?[[:blank:]]*)*[]]?$end)" "$stage/enrolled.toml"; then
    die "the service sent a policy that this script cannot read: the enrolment must have one line each as in commands = \"off\", without a backslash, a table, quotes around the word before the = or three of them; the agent was not installed"
  fi
  judge "$stage/enrolled.toml" || die "the service sent a policy that its agent refuses: ${said#*enrolled.toml: }; the agent was not installed"
  if grep -q '^Signatures:' "$stage/meaning"; then
    die "the service sent a policy about signatures, and only this machine may say whose signatures count: find out who changed the enrolment; the agent was not installed"
  fi
}

# judge FILE: whether the agent takes this policy. Leaves what it means to the agent, or sets why not.
judge() {
  if "$stage/agent" check-policy --policy "$1" >"$stage/meaning" 2>"$stage/said"; then return 0; fi
  said=$(plain <"$stage/said")
  case $said in
    # An agent from before this question; it may be the right one all the same.
    "signalbox-agent: un"*"'check-policy'"*) : >"$stage/meaning" && return 0 ;;
    *"${1%/*}/"*) said=${said%%"${1%/*}/"*}$etc/${said#*"${1%/*}/"} ;;
  esac
  said=${said#signalbox-agent: }
  return 1
}

clean_up() {
  rm -rf "$stage" ${trial:+"$trial"}
  rmdir "$root$etc" 2>/dev/null || :
  for file in $files; do
    rm -f "$root$file.new"
  done
}

# --- The settings, written beside those in place.

# value_of FILE NAME: the value of NAME, without quotes.
value_of() {
  sed -n "s|^[[:space:]]*$2[[:space:]]*=[[:space:]]*[\"']\{0,1\}\([^\"'#[:space:]]*\).*|\1|p" "$1" | tail -n 1
}

# put FILE NAME LINE: replaces the line that sets NAME, or appends LINE. All others stay as they are.
put() {
  if grep "^[[:space:]]*$2[[:space:]]*=[[:space:]]*\[" "$1" | grep -qv '\]'; then
    die "$2 spans several lines in the policy: change it in $etc/policy.toml; no file was changed"
  elif grep -q "^[[:space:]]*$2[[:space:]]*=" "$1"; then
    sed "s|^[[:space:]]*$2[[:space:]]*=.*|$3|" "$1" >"$1.put"
    mv "$1.put" "$1"
  else
    # The last line may lack its newline.
    if [ -n "$(tail -c 1 "$1")" ]; then echo >>"$1"; fi
    printf '%s\n' "$3" >>"$1"
  fi
}

write_policy() {
  policy=$stage/policy.toml
  if [ -f "$root$etc/policy.toml" ]; then
    cat "$root$etc/policy.toml" >"$policy"
    if [ -s "$stage/enrolled.toml" ]; then
      say "the policy in $etc/policy.toml stays as it was; that of the enrolment was not written"
    fi
  elif [ -s "$stage/enrolled.toml" ]; then
    cat "$stage/enrolled.toml" >"$policy"
  else
    cat >"$policy" <<'END'
# What the service may ask of this machine. The agent reads it at its start and cannot change it.
processes = "on"
commands = "off"
docker = "read"
logs = "off"
log_paths = []
terminal = "off"
END
    if [ -z "$docker" ] && runs_programs; then
      docker=off
      say 'containers are not shown: with Docker, commands and terminals could become root; --docker read allows it'
    fi
  fi
  for name in processes commands docker logs terminal record updates; do
    case $name in
      record) chosen=$record ;;
      updates) chosen=$updates ;;
      processes) chosen=$processes ;;
      commands) chosen=$commands ;;
      docker) chosen=$docker ;;
      logs) chosen=$logs ;;
      terminal) chosen=$terminal ;;
    esac
    if [ -n "$chosen" ]; then put "$policy" "$name" "$name = \"$chosen\""; fi
  done
  if [ -n "$log_paths" ]; then
    put "$policy" log_paths "log_paths = [$log_paths]"
  fi
  # What is not in the file has the agent's default.
  commands=$(value_of "$policy" commands)
  terminal=$(value_of "$policy" terminal)
  logs=$(value_of "$policy" logs)
  docker=$(value_of "$policy" docker)
  docker=${docker:-read}
  demand_signatures
  demand_release_signers
  if [ "$(value_of "$policy" record)" = on ]; then
    case ${terminal:-off} in
      off) say 'record is on, but terminals are off: --terminal on allows them' ;;
      *) say 'terminals are recorded, in /var/lib/signalbox-agent/recordings' ;;
    esac
  fi
  if [ "$docker" != off ] && runs_programs; then
    say 'anyone who can use the Docker socket can become root, and so can commands and terminals; --docker off prevents it'
  fi
  try_policy
}

# try_policy: the agent reads the policy as it will at its start.
try_policy() {
  if ! asks_for_signatures && [ "$updates" != signed ]; then
    judge "$policy" || die "the agent refuses the policy: $said; no file was changed"
    return 0
  fi
  # It counts only what is root's, as are the directories above: where packagers have their files, it can say nothing.
  if [ "$(id -u)" != 0 ]; then return 0; fi
  mkdir -p "$root$etc"
  chmod 0755 "$root$etc"
  trial=$(mktemp -d "$root$etc/.trial.XXXXXX") || die "cannot write to $root$etc"
  cat "$policy" >"$trial/policy.toml"
  if asks_for_signatures; then
    use_signers
    try_list || return 0
  fi
  if [ "$updates" = signed ]; then
    use_release_signers
    try_list || return 0
  fi
  judge "$trial/policy.toml" || die "the agent refuses the policy: $said; no file was changed"
  [ -s "$stage/meaning" ] || die "the service's agent cannot check a policy: it is too old; no file was changed"
  rm -rf "$trial"
}

# try_list: makes the policy that is tried name the list as it is going to be. Fails where packagers have none.
try_list() {
  there=$(value_of "$policy" "$policy_word")
  by=$root${there:-$list_file}
  if [ -s "$all" ]; then
    by=$trial/${list_file##*/}
    cat "$all" >"$by"
  fi
  if [ "$by" = "$there" ]; then return 0; fi
  if [ -n "$root" ] && [ ! -e "$by" ]; then return 1; fi
  # Lines keep their numbers.
  sed "s/^[[:space:]]*$policy_word[[:space:]]*=.*//" "$trial/policy.toml" >"$trial/put"
  printf "\n%s = '%s'\n" "$policy_word" "$by" >>"$trial/put"
  mv "$trial/put" "$trial/policy.toml"
}

# asks_for_signatures: whether what the options, or later the policy, say needs any.
asks_for_signatures() {
  case $commands:$terminal:$docker in
    signed:* | *:signed:* | *:signed) ;;
    *) return 1 ;;
  esac
}

# demand_signatures: what a policy needs beside "signed", and what it must not have without.
demand_signatures() {
  if ! asks_for_signatures; then
    [ -z "$signers" ] ||
      die "--signers is for what has to be signed: use --commands signed, --terminal signed or --docker signed, too; no file was changed"
    [ -z "$approvals$allowed" ] ||
      die "--approvals and --allow are for what has to be signed: use --commands signed, too; no file was changed"
    for word in name signers approvals allow; do
      [ -z "$(value_of "$policy" "$word")" ] ||
        die "nothing would have to be signed, and the policy has $word: take name, signers, approvals and allow out of $etc/policy.toml first; no file was changed"
    done
    return 0
  fi
  [ "$commands" = signed ] || [ -z "$allowed" ] ||
    die "--allow is for commands that have to be signed: use --commands signed, too; no file was changed"
  [ "$commands" = signed ] || [ -z "$(value_of "$policy" allow)" ] ||
    die "the policy has allow, which needs commands = \"signed\": take it out of $etc/policy.toml first; no file was changed"
  if [ -n "$signers" ]; then
    put "$policy" signers "signers = \"$signers_file\""
  elif [ -z "$(value_of "$policy" signers)" ]; then
    die "nobody could sign: name those whose signatures count with --signers; no file was changed"
  fi
  if [ -n "$approvals" ]; then put "$policy" approvals "approvals = $approvals"; fi
  if [ -n "$allowed" ]; then put "$policy" allow "allow = [$allowed]"; fi
  say_demands
  case $commands:$terminal in
    on:* | *:on) say 'what is "on" needs no signature, so the signatures protect nothing' ;;
    [[]* | *:[[]*) say 'what people in a list ask for needs no signature, and the service says who asks: the signatures protect nothing' ;;
  esac
  case $docker in
    control | [[]*) say 'containers need no signature: a service that is taken over can start, stop and restart any' ;;
  esac
  if [ -z "$signed" ]; then return 0; fi
  # Never the name that the service answers: with that of another server, what is signed for the other would run here.
  if [ -n "$asked_name" ] || [ -z "$(value_of "$policy" name)" ]; then
    signed_name=${asked_name:-$(uname -n)}
    case $signed_name in
      '' | [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) die "the host name of this machine cannot be its name for signers: give it one with --name; no file was changed" ;;
    esac
    put "$policy" name "name = \"$signed_name\""
  fi
  say "those who sign call this server $(value_of "$policy" name)"
}

# demand_release_signers: what a policy needs beside updates = "signed", and what it must not have without.
demand_release_signers() {
  updates=$(value_of "$policy" updates)
  if [ "$updates" != signed ]; then
    [ -z "$release_signers" ] || die "--release-signers is for builds that are signed: use --updates signed, too; no file was changed"
    # The agent would refuse it. The keys stay in their file.
    sed '/^[[:space:]]*release_signers[[:space:]]*=/d' "$policy" >"$policy.put"
    mv "$policy.put" "$policy"
    return 0
  fi
  if [ -n "$release_signers" ]; then
    put "$policy" release_signers "release_signers = \"$release_file\""
  elif [ -z "$(value_of "$policy" release_signers)" ] && [ ! -s "$root$release_file" ]; then
    die "nobody could sign builds: name those whose signatures count with --release-signers; no file was changed"
  fi
  say 'the agent takes newer builds of itself from the service, if one of the release signers has signed them'
}

# say_demands: how many have to sign, and what needs no signature.
say_demands() {
  many=$(value_of "$policy" approvals)
  case ${many:-1} in
    1) [ -z "$approvals" ] || say 'one signature is enough' ;;
    *) say "$many different people have to sign" ;;
  esac
  # One that spans several lines is the administrator's own, who has written it.
  without=$(sed -n 's/^[[:space:]]*allow[[:space:]]*=[[:space:]]*\[\(.*\)\].*/\1/p' "$policy" | tail -n 1)
  if [ -n "$without" ]; then say "these commands run without a signature: $without"; fi
}

# Whether the policy permits the service, some people or signers to run any command as the agent's user.
runs_programs() {
  case ${commands:-off}:${terminal:-off} in
    off:off) return 1 ;;
  esac
}

write_environment() {
  environment=$stage/agent.env
  : >"$environment"
  if [ -f "$root$etc/agent.env" ]; then cat "$root$etc/agent.env" >"$environment"; fi
  put "$environment" SIGNALBOX_AGENT_URL "SIGNALBOX_AGENT_URL=$agent_url"
  if [ -n "$interval" ]; then put "$environment" SIGNALBOX_AGENT_INTERVAL "SIGNALBOX_AGENT_INTERVAL=$interval"; fi
  # An authority for the script's service need not be one for the service that the agent stays with.
  if [ -n "$ca_file" ] && [ "$agent_url" = "$source_url" ]; then
    # A copy, because the agent's user may not be able to read the original.
    cat -- "$ca_file" >"$stage/ca.pem"
    put "$environment" SIGNALBOX_AGENT_CA_FILE "SIGNALBOX_AGENT_CA_FILE=$etc/ca.pem"
  elif [ "$agent_url" != "$in_place" ]; then
    # It belonged to another service.
    sed '/^[[:space:]]*SIGNALBOX_AGENT_CA_FILE[[:space:]]*=/d' "$environment" >"$environment.put"
    mv "$environment.put" "$environment"
  fi
}

write_unit() {
  cat <<'END'
# Written by the service's install.sh, which overwrites it: put changes into `systemctl edit signalbox-agent`.
[Unit]
Description=Signalbox agent
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
User=signalbox-agent
Group=signalbox-agent
EnvironmentFile=/etc/signalbox-agent/agent.env
ExecStart=/usr/local/bin/signalbox-agent --key-file /etc/signalbox-agent/key --policy /etc/signalbox-agent/policy.toml
StateDirectory=signalbox-agent
StateDirectoryMode=0700
Restart=always
RestartSec=10
# Wrong settings, or a key that was refused: trying again would change nothing.
RestartPreventExitStatus=2 3
END
  if runs_programs; then
    cat <<'END'

# Not hardened: the policy allows commands or a terminal, which are to do whatever this user may do, sudo included.
# As with sshd, what a command left in the background lives on when the agent is restarted.
KillMode=process
END
  else
    cat <<'END'

# All that the agent does is read, and talk to the service and the container engine.
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
# Not hidden: a disk that is mounted there is measured, and logs may lie there.
ProtectHome=read-only
END
    if grep -q '^[[:space:]]*log_paths.*["'\'']/\(var/\)\{0,1\}tmp["'\''/]' "$policy"; then
      printf '# The policy names a log below /tmp or /var/tmp.\nPrivateTmp=no\n'
    else
      printf 'PrivateTmp=yes\n'
    fi
    cat <<'END'
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
# AF_NETLINK is how the C library learns which addresses the machine has when it looks up a name.
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
UMask=0077
END
  fi
  cat <<'END'

[Install]
WantedBy=multi-user.target
END
}

# --- Putting it in place.

make_user() {
  if [ -n "$root" ]; then return 0; fi
  if ! id -u "$user" >/dev/null 2>&1; then
    shell=/bin/false
    for candidate in /usr/sbin/nologin /sbin/nologin; do
      if [ -x "$candidate" ]; then shell=$candidate && break; fi
    done
    getent group "$user" >/dev/null || groupadd --system "$user" || die "cannot make the group $user"
    useradd --system --gid "$user" --no-create-home --home-dir /nonexistent --shell "$shell" "$user" ||
      die "cannot make the user $user"
  fi
}

# After the policy is in place: without it, these rights would have no bounds.
join_groups() {
  if [ -n "$root" ]; then return 0; fi
  membership docker "$docker"
  membership systemd-journal "$logs"
  membership adm "$logs"
}

# membership GROUP off|...: makes the user's groups match the policy.
membership() {
  getent group "$1" >/dev/null || return 0
  case $2 in
    '' | off)
      if id -nG "$user" | tr ' ' '\n' | grep -qx "$1"; then
        gpasswd -d "$user" "$1" >/dev/null || die "cannot remove $user from the group $1"
      fi
      ;;
    *) usermod -a -G "$1" "$user" || die "cannot add $user to the group $1" ;;
  esac
}

# prepare STAGED FILE MODE GROUP: a copy beside the file, with its rights.
prepare() {
  (umask 077 && cat "$1" >"$root$2.new") || die "cannot write $root$2; no file was changed"
  if [ -z "$root" ]; then chown "root:$4" "$root$2.new"; fi
  chmod "$3" "$root$2.new"
  prepared="$prepared $2"
}

put_in_place() {
  mkdir -p "$root$etc" "$root/etc/systemd/system"
  chmod 0755 "$root$etc"
  prepared=''
  prepare "$stage/agent" "$agent" 0755 root
  prepare "$policy" "$etc/policy.toml" 0644 root
  if [ -s "$stage/all" ]; then prepare "$stage/all" "$signers_file" 0644 root; fi
  if [ -s "$stage/all-releases" ]; then prepare "$stage/all-releases" "$release_file" 0644 root; fi
  # Systemd reads it, as root. A proxy's password may be in it.
  prepare "$environment" "$etc/agent.env" 0600 root
  prepare "$stage/unit" "$unit" 0644 root
  if [ -f "$stage/ca.pem" ]; then prepare "$stage/ca.pem" "$etc/ca.pem" 0644 root; fi
  if [ -n "$key" ]; then
    printf '%s\n' "$key" >"$stage/key"
    prepare "$stage/key" "$etc/key" 0640 "$user"
  fi
  for file in $prepared; do
    mv -f "$root$file.new" "$root$file"
  done
  rm -f "$root$request"
}

start() {
  if [ -n "$root" ]; then
    echo "the agent's files are below $root"
    return 0
  fi
  since=$(date +%s)
  systemctl daemon-reload || die "systemctl daemon-reload failed"
  systemctl enable signalbox-agent.service >/dev/null 2>&1 || die "the agent's service cannot be enabled"
  systemctl restart signalbox-agent.service || die "the agent's service cannot be started: see journalctl -u signalbox-agent"
  await_connection
}

await_connection() {
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    sleep 1
    state=$(systemctl is-active signalbox-agent.service) || :
    case $state in
      active | activating) ;;
      *) break ;;
    esac
    if words | grep -q 'connected to '; then
      echo "the agent is installed, and connected to $agent_url"
      return 0
    fi
  done
  words | tail -n 10 >&2
  case $state in
    active) die "the agent is installed and runs, but is not connected to $agent_url yet; it keeps trying" ;;
    *) die "the agent is installed, but does not run ($state): see journalctl -u signalbox-agent" ;;
  esac
}

# words: what the agent has logged since it was started.
words() {
  journalctl -q --no-pager -o cat -u signalbox-agent.service --since "@$since" 2>/dev/null || :
}

# processes_of UID: the ids of this user's processes, whichever of its three ids is in use.
processes_of() {
  # Processes that have ended cannot be read.
  grep -ls "^Uid:.*[[:space:]]$1[[:space:]]" /proc/[0-9]*/status | cut -d / -f 3 || :
}

# end_processes UID: a user with a process cannot be removed.
end_processes() {
  for signal in TERM KILL; do
    for _ in 1 2 3 4 5; do
      left=$(processes_of "$1")
      if [ -z "$left" ]; then return 0; fi
      for process in $left; do
        kill -s "$signal" "$process" 2>/dev/null || :
      done
      sleep 1
    done
  done
}

uninstall() {
  if [ -z "$root" ]; then
    [ "$(id -u)" = 0 ] || die "only root can remove the agent"
  fi
  lock
  if [ -z "$root" ] && have systemctl; then
    # With background processes of commands, which stopping does not end.
    systemctl kill signalbox-agent.service >/dev/null 2>&1 || :
    systemctl disable --now signalbox-agent.service >/dev/null 2>&1 || :
  fi
  for file in $files; do
    rm -f "$root$file" "$root$file.new"
  done
  rm -rf "$root$etc" "$root$unit.d" "$root/var/lib/signalbox-agent"
  # Left over from runs that were killed.
  rm -rf "$root$stages".??????
  if [ -z "$root" ]; then
    if have systemctl; then
      systemctl daemon-reload >/dev/null 2>&1 || :
      systemctl reset-failed signalbox-agent.service >/dev/null 2>&1 || :
    fi
    if id -u "$user" >/dev/null 2>&1; then
      end_processes "$(id -u "$user")"
      userdel "$user" || die "cannot remove the user $user"
    fi
    # Whether it was removed with the user differs between distributions.
    if getent group "$user" >/dev/null; then groupdel "$user" || die "cannot remove the group $user"; fi
  fi
  echo "the agent is removed"
}

main() {
  service_url='@SERVICE_URL@'
  # No program after this needs it.
  environment_key=${SIGNALBOX_AGENT_KEY:-}
  environment_token=${SIGNALBOX_ENROLMENT_TOKEN:-}
  unset SIGNALBOX_AGENT_KEY SIGNALBOX_ENROLMENT_TOKEN
  notes='' trial=''
  user=signalbox-agent
  etc=/etc/signalbox-agent
  agent=/usr/local/bin/signalbox-agent
  unit=/etc/systemd/system/signalbox-agent.service
  stages=/usr/local/bin/.signalbox-agent
  request=$etc/enrolment-request
  signers_file=$etc/allowed_signers
  release_file=$etc/release_signers
  files="$agent $unit $etc/policy.toml $signers_file $release_file $etc/agent.env $etc/ca.pem $etc/key"
  newline='
'
  return=$(printf '\r')
  root=${SIGNALBOX_ROOT:-}
  case $root in
    '' | /*) ;;
    *) die "SIGNALBOX_ROOT must be an absolute path" ;;
  esac
  root=${root%/}

  parse "$@"
  if [ -n "$uninstall" ]; then
    uninstall
    return 0
  fi
  find_key
  find_service
  for list in use_signers use_release_signers; do
    "$list"
    check_origins
  done
  find_platform
  check_machine
  umask 022
  lock
  download
  for list in use_signers use_release_signers; do
    "$list"
    gather_signers
  done
  # What has to be signed is settled before the service answers, and whatever it answers.
  if [ -n "$signed" ]; then write_policy; fi
  enrol
  if [ -z "$signed" ]; then write_policy; fi
  write_environment
  write_unit >"$stage/unit"
  make_user
  put_in_place
  if [ -n "$notes" ]; then printf '%s\n' "$notes"; fi
  join_groups
  start
}

# In braces, so that half of this line is no command. The script itself may be the standard input.
{ main "$@" </dev/null; }
