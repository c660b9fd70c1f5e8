// npm jayson on lines: `jayson.Server` gets each line as it came, and what it calls back with is written. Only glue.
'use strict';

const jayson = require('../target/jayson/node_modules/jayson');

let count = 0;

const server = new jayson.Server({
  'peerproof.echo': (params, callback) => callback(null, params === undefined ? {} : params),
  'peerproof.fail': (_params, callback) => callback(new Error('this method always fails')),
  'peerproof.named': (params, callback) => {
    const { minuend, subtrahend } = params || {};
    if (typeof minuend !== 'number' || typeof subtrahend !== 'number') {
      return callback(server.error(jayson.Server.errors.INVALID_PARAMS));
    }
    return callback(null, minuend - subtrahend);
  },
  'peerproof.counter': (_params, callback) => callback(null, { count: ++count }),
});

const serve = (line) => {
  server.call(line, (error, response) => {
    const reply = error || response;
    if (reply) {
      process.stdout.write(`${JSON.stringify(reply)}\n`);
    }
  });
};

// Not `readline`: to it, U+2028 and a carriage return end a line as well.
let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop();
  lines.forEach(serve);
});
process.stdin.on('end', () => rest && serve(rest));
