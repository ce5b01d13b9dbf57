// Starts a server and asks it something, so that V8 has compiled what a start needs, and keeps that. Run by `prepare.mjs`, with the
// flags of `bin/annals`: with others V8 compiles anew.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { keepCompiled } from './chunks.mjs';
import { main } from '../dist/main.js';

// What has not run for a while would be dropped.
setFlagsFromString('--no-flush-bytecode');
const folder = mkdtempSync(join(tmpdir(), 'annals-compile-'));
for (const name of Object.keys(process.env)) if (name.startsWith('SERVICE_')) delete process.env[name];
Object.assign(process.env, {
  HOME: folder,
  SERVICE_DATA_DIR: join(folder, 'data'),
  SERVICE_PORT: '0',
  SERVICE_ADMIN_BIND: '127.0.0.1:0',
});
process.chdir(folder);
process.stdout.write = () => true;

try {
  const { url, token, stop } = await serve();
  const ask = async (path, body) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const reply = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`${path}: ${await reply.text()}`);
  };
  await ask('/ingest/auto?object_type=Note', [
    { id: 'n1', text: 'it rains' },
    { id: 'n2', text: 'it snows' },
  ]);
  await ask('/query', { sql: 'SELECT COUNT(*) AS n FROM Note' });
  await stop();
  await main(['query', 'SELECT id, text, valid_from FROM Note ORDER BY id']);
} finally {
  setFlagsFromString('--flush-bytecode');
  keepCompiled();
  rmSync(folder, { recursive: true });
}

/** Resolves once the server has said where it serves, and a token. */
async function serve() {
  let ended;
  const said = await new Promise((resolve) => {
    let text = '';
    process.stderr.write = (chunk) => {
      text += chunk;
      if (text.includes('export TOKEN=') && text.endsWith('\n\n')) resolve(text);
      return true;
    };
    ended = main(['serve']).then(() => resolve(text));
  });
  const [, url] = /serves (http:\S+),/.exec(said) ?? [];
  const [, token] = /export TOKEN=(\S+)/.exec(said) ?? [];
  if (url === undefined || token === undefined) throw new Error(`the server did not start: ${said}`);
  const stop = async () => {
    process.emit('SIGTERM');
    await ended;
  };
  return { url, token, stop };
}
