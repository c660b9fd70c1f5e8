#!/usr/bin/env node
// An example policy driver: the provider side of the policy_driver boundary, in JavaScript without dependencies.
//
//     node policy_driver.js PAYLOAD        decides from the payload file, prints one block, exits
//
// Rules, the first that applies:
//
// 1. `inputs.policy` is "stop": <NOOP><END>; "ask": <ASK_SUP><END>.
// 2. The entry: the first of the menu with the tag `http` if the inputs have a `url`, `shell` if they have a `cmd`,
//    `file` if they have a `path`; else the first of the menu. From an empty menu nothing is picked: <ASK_SUP><END>.
// 3. `inputs.policy_patch`, an object, goes along as INP; `inputs.policy_patch64` as INP64.
//
// A payload that is none ends in exit status 1, nothing on stdout, and the reason on stderr. Fields that are absent
// have a default; of two entries with one SID the first counts, and of two members with one name the last.

'use strict';

const fs = require('fs');

const STDOUT_BYTES_MAX = 65536; // all that we print; inclusive
const NOOP = '<NOOP><END>\n';
const ASK_SUP = '<ASK_SUP><END>\n';
const TAG_OF_INPUT = [['url', 'http'], ['cmd', 'shell'], ['path', 'file']];

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isString = (value) => typeof value === 'string';

/** Own members only: a name such as `constructor` finds nothing that the payload did not say. */
const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

/** A member of the right type, or the default where it is absent. */
function member(holder, name, isRight, whenAbsent) {
  const value = own(holder, name);
  if (value === undefined) return whenAbsent;
  if (!isRight(value)) throw new Error(`${name} is of another type`);
  return value;
}

/** Bytes → `{ inputs, menu }`, of which every field that is there has its type. */
function parsePayload(data) {
  // Strict UTF-8; a byte order mark stays and is no JSON.
  const payload = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data));
  if (!isObject(payload)) throw new Error('not an object');
  for (const name of ['goal_digest', 'state_digest', 'control_mode']) member(payload, name, isString, '');
  const menu = member(payload, 'menu', Array.isArray, []);
  for (const entry of menu) {
    if (!isObject(entry)) throw new Error('an entry of the menu is no object');
    const sid = own(entry, 'sid');
    if (!isString(sid) || !/^SID[0-9]{4}$/.test(sid)) throw new Error('a sid is not SID and four digits');
    member(entry, 'aid', isString, '');
    member(entry, 'name', isString, '');
    if (!member(entry, 'tags', Array.isArray, []).every(isString)) throw new Error('a tag is no string');
  }
  return { inputs: member(payload, 'inputs', isObject, {}), menu };
}

function choose(inputs, menu) {
  for (const [name, tag] of TAG_OF_INPUT) {
    if (!Object.hasOwn(inputs, name)) continue;
    const entry = menu.find((candidate) => member(candidate, 'tags', Array.isArray, []).includes(tag));
    if (entry) return entry;
  }
  return menu[0];
}

/** Strict JSON text. A number that was beyond every double is not passed on as null. */
function textOf(patch) {
  return JSON.stringify(patch, (_, value) => {
    if (typeof value === 'number' && !Number.isFinite(value)) throw new Error('number out of range');
    return value;
  });
}

/** The patch that the inputs ask for, as it stands between `<SIDdddd>` and `<END>`. */
function patchOf(inputs) {
  const plain = own(inputs, 'policy_patch');
  if (isObject(plain)) return `<INP>${textOf(plain)}</INP>`;
  const encoded = own(inputs, 'policy_patch64');
  // What is not well-formed Unicode (a lone surrogate) JSON.stringify writes as an escape.
  if (isObject(encoded)) return `<INP64>${Buffer.from(textOf(encoded)).toString('base64')}</INP64>`;
  return '';
}

function decide({ inputs, menu }) {
  const policy = own(inputs, 'policy');
  if (policy === 'stop') return NOOP;
  if (policy === 'ask') return ASK_SUP;
  const entry = choose(inputs, menu);
  if (!entry) return ASK_SUP;
  const block = `<PICK><${entry.sid}>${patchOf(inputs)}<END>\n`;
  return Buffer.byteLength(block) <= STDOUT_BYTES_MAX ? block : ASK_SUP;
}

function main(args) {
  if (args.length !== 1) {
    process.stderr.write('usage: policy_driver.js PAYLOAD\n');
    return 2;
  }
  let block;
  try {
    block = decide(parsePayload(fs.readFileSync(args[0])));
  } catch (error) {
    process.stderr.write(`policy_driver.js: payload: ${error.message}\n`);
    return 1;
  }
  fs.writeFileSync(1, block);
  return 0;
}

process.exitCode = main(process.argv.slice(2));
