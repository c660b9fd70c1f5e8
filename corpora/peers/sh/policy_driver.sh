#!/bin/sh
# An example policy driver: the provider side of the policy_driver boundary, in POSIX sh and awk.
#
#     sh policy_driver.sh PAYLOAD        decides from the payload file, prints one block, exits
#
# It picks the first entry of the menu, or, if the inputs have a `url`, `cmd` or `path` (asked in this order), the first
# one with the tag `http`, `shell` or `file`. `inputs.policy` "stop" and "ask" mean <NOOP><END> and <ASK_SUP><END>. An
# object `inputs.policy_patch` goes along as INP, in the payload's own spelling; of patches in base64 it knows nothing.
# From an empty menu, or a payload that it does not understand to its end, it picks nothing: <ASK_SUP><END>.
#
# Text of the payload never reaches the shell. awk reads the file cut at its quotes, so that strings and what stands
# between them are pieces; a small automaton follows the grammar of JSON over the pieces. It is lenient with UTF-8 and
# NULs alone.

if [ $# -ne 1 ]; then
    echo "usage: policy_driver.sh PAYLOAD" >&2
    exit 2
fi
if [ ! -f "$1" ] || [ ! -r "$1" ] || [ ! -s "$1" ]; then
    echo "policy_driver.sh: the payload is no file, empty, or cannot be read" >&2
    echo "<ASK_SUP><END>"
    exit 0
fi

LC_ALL=C
export LC_ALL
exec awk '
# Where we are: depth, kind[depth] ("{" or "["), name[depth] (the member, or "" in an array), and want, what may come
# next:  v a value   V a value or "]"   n a name   N a name or "}"   : a colon   , a comma or an end   e nothing
function fail(reason) {
    if (!failed) print "policy_driver.sh: payload: " reason > "/dev/stderr"
    failed = 1
    exit
}

# A value that is no string begins: "{", "[", or a number or literal that is complete.
function value(sort) {
    if (want != "v" && want != "V") fail("a value in the wrong place")
    if (depth == 0 && sort != "{") fail("not an object")
    typed(sort)
}

# The fields that the contract names have their types.
function typed(sort) {
    if (depth == 1) {
        if (name[1] == "inputs" && sort != "{") fail("inputs is no object")
        if (name[1] == "menu" && sort != "[") fail("menu is no array")
        if (name[1] ~ /^(goal_digest|state_digest|control_mode)$/ && sort != "s") fail(name[1] " is no string")
        # Of two members with one name the last counts.
        if (name[1] == "menu") forget_menu()
        if (name[1] == "inputs") forget_inputs()
    } else if (depth == 2 && name[1] == "menu") {
        if (sort != "{") fail("an entry of the menu is no object")
    } else if (depth == 3 && name[1] == "menu") {
        if (name[3] ~ /^(sid|aid|name)$/ && sort != "s") fail(name[3] " is no string")
        if (name[3] == "tags" && sort != "[") fail("tags is no array")
    } else if (depth == 4 && name[1] == "menu" && name[3] == "tags" && sort != "s") fail("a tag is no string")
    if (depth == 2 && name[1] == "inputs") {
        input[name[2]] = 1
        if (name[2] == "policy") policy = ""
        if (name[2] == "policy_patch") {
            patch = ""
            patch_too_long = 0
            patch_is_object = (sort == "{")
        }
    }
}

function forget_menu() {
    first = ""
    split("", known)
    split("", tagged)
}

function forget_inputs() {
    policy = patch = ""
    patch_too_long = 0
    split("", input)
}

function open_container(mark) {
    value(mark)
    if (++depth > 512) fail("nested too deeply")
    kind[depth] = mark
    name[depth] = ""
    want = mark == "{" ? "N" : "V"
    if (depth == 3 && name[1] == "menu") sid = tag_list = ""
    if (depth == 4 && name[1] == "menu" && name[3] == "tags") tag_list = ""
}

function close_container(mark) {
    if (kind[depth] != (mark == "}" ? "{" : "[")) fail("brackets do not match")
    if (want != "," && want != (mark == "}" ? "N" : "V")) fail("a container ends too early")
    if (depth == 3 && name[1] == "menu") end_of_entry()
    depth--
    want = depth ? "," : "e"
}

function end_of_entry() {
    if (sid !~ /^SID[0-9][0-9][0-9][0-9]$/) fail("a sid is not SID and four digits")
    if (sid in known) fail("a sid is there twice")
    known[sid] = 1
    if (first == "") first = sid
    for (tag in of_tag) if (index(tag_list, "|" tag "|") && tagged[tag] == "") tagged[tag] = sid
}

# A whole string. Its text matters only where it is short and ours; longer ones are "a long one".
function string(text) {
    if (want == "n" || want == "N") {
        name[depth] = plain(text)
        want = ":"
        return
    }
    if (want != "v" && want != "V") fail("a string in the wrong place")
    if (depth == 0) fail("not an object")
    typed("s")
    want = ","
    if (depth == 3 && name[1] == "menu" && name[3] == "sid") sid = plain(text)
    if (depth == 4 && name[1] == "menu" && name[3] == "tags") tag_list = tag_list "|" plain(text) "|"
    if (depth == 2 && name[1] == "inputs" && name[2] == "policy") policy = plain(text)
}

# The text of a short string, escapes of ASCII resolved; of others something that equals no word of ours.
function plain(text,    out, at, code) {
    if (index(text, "\\") == 0) return length(text) <= 32 ? text : "(long)"
    if (length(text) > 200) return "(long)"
    out = ""
    while ((at = index(text, "\\")) > 0) {
        out = out substr(text, 1, at - 1)
        code = substr(text, at + 1, 1)
        if (code == "u") {
            code = tolower(substr(text, at + 2, 4))
            out = out (code in ascii ? ascii[code] : "(other)")
            text = substr(text, at + 6)
        } else {
            out = out (code == "/" ? "/" : "(other)")
            text = substr(text, at + 2)
        }
    }
    return out text
}

# What stands between two strings.
function between(text,    mark, token, from) {
    while (text != "") {
        # Each step copies the rest: what would take too long is not read.
        work += length(text)
        if (work > WORK_MAX) fail("too much of it")
        if (substr(text, 1, 1) ~ /[ \t\r\n]/) {
            match(text, /^[ \t\r\n]+/)
        } else if (match(text, /^[-+.0-9A-Za-z]+/)) {
            token = substr(text, 1, RLENGTH)
            from = RLENGTH
            if (token !~ /^(true|false|null|-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?)$/) fail("no JSON token")
            value("a")
            want = ","
            RLENGTH = from
        } else {
            mark = substr(text, 1, 1)
            if (mark == "{" || mark == "[") open_container(mark)
            else if (mark == "}" || mark == "]") close_container(mark)
            else if (mark == ":" && want == ":") want = "v"
            else if (mark == "," && want == "," && depth) want = kind[depth] == "{" ? "n" : "v"
            else fail("no JSON at \"" mark "\"")
            RLENGTH = 1
        }
        # Only the patch is kept, as it is spelt.
        if (recording) record(substr(text, 1, RLENGTH))
        else if (patch_is_object && depth == 3 && want == "N") { recording = 1; patch = "{" }
        if (recording && depth == 2) recording = patch_is_object = 0
        text = substr(text, RLENGTH + 1)
    }
}

function record(text) {
    if (length(patch) + length(text) < 65536) patch = patch text
    else patch_too_long = 1
}

function check_string(piece) {
    if (piece ~ /[\001-\037]/) fail("a control character in a string")
    if (index(piece, "\\") == 0) return
    gsub(/\\["\\\/bfnrt]/, "", piece)
    gsub(/\\u[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]/, "", piece)
    if (index(piece, "\\")) fail("no such escape")
}

BEGIN {
    RS = "\""
    want = "v"
    WORK_MAX = 100000000
    PIECES_MAX = 400000
    for (code = 32; code < 127; code++) ascii[sprintf("%04x", code)] = sprintf("%c", code)
    of_tag["http"] = of_tag["shell"] = of_tag["file"] = 1
}

# Pieces are by turns what stands between strings and (parts of) strings: a quote behind an odd number of backslashes
# belongs to its string.
{
    pieces++
    if (pieces > PIECES_MAX) fail("too much of it")
    if (!inside) {
        if (length($0) > 262144) fail("too much between two strings")
        between($0)
        inside = 1
        text = ""
        next
    }
    goes_on = 0
    for (at = length($0); at && substr($0, at, 1) == "\\"; at--) goes_on = !goes_on
    check_string(goes_on ? substr($0, 1, length($0) - 1) : $0)
    if (length(text) <= 65536) text = text $0 (goes_on ? "\"" : "")
    if (goes_on) next
    if (recording) record("\"" text "\"")
    string(text)
    inside = 0
}

END {
    # The last piece lies behind the last quote; the text must have ended there, outside every string.
    if (!failed && (want != "e" || !inside)) fail_at_end = 1
    if (failed || fail_at_end || policy == "ask") block = "<ASK_SUP><END>"
    else if (policy == "stop") block = "<NOOP><END>"
    else {
        pick = ""
        if (("url" in input)) pick = tagged["http"]
        if (pick == "" && ("cmd" in input)) pick = tagged["shell"]
        if (pick == "" && ("path" in input)) pick = tagged["file"]
        if (pick == "") pick = first
        block = "<PICK><" pick ">" (patch != "" ? "<INP>" patch "</INP>" : "") "<END>"
        if (pick == "" || patch_too_long || length(block) > 65535) block = "<ASK_SUP><END>"
    }
    print block
}
' <"$1"
