// Brings a checkout to a state that runs: installs what package-lock.json says if node_modules is not it, and
// bundles src into dist if any source is newer. Quiet when there is nothing to do.
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants as fileModes,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`annals needs Node 20.19 or later; this is ${process.versions.node}`);
  process.exit(1);
}

function run(command, args) {
  // Loaded where there is something to do: every command of the checkout comes by here.
  const { spawnSync } = createRequire(import.meta.url)('node:child_process');
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (error) throw error;
  return status;
}

function newest(directory) {
  let latest = 0;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = `${directory}/${entry.name}`;
    latest = Math.max(latest, entry.isDirectory() ? newest(path) : statSync(path).mtimeMs);
  }
  return latest;
}

// By content, not by date: a checkout or a copy changes dates, and an install that is not needed would pull the
// packages from under whoever is running.
const lockHash = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex');
const installed = join(root, 'node_modules/.annals-lock');
if (!existsSync(installed) || readFileSync(installed, 'utf8') !== lockHash) {
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) {
    console.error('node_modules is a link to packages of another package-lock.json, which others may be using: remove the link');
    process.exit(1);
  }
  console.error('installing dependencies …');
  const status = run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
  if (status !== 0) process.exit(status ?? 1);
  writeFileSync(installed, lockHash);
}

const stamp = join(root, 'dist/.bundled');
const sources = Math.max(
  ...['src', 'console'].map((folder) => newest(join(root, folder))),
  ...['scripts/bundle.mjs', 'scripts/console.mjs', 'verify/annals-verify.mjs'].map((file) => statSync(join(root, file)).mtimeMs),
);
if (!existsSync(stamp) || statSync(stamp).mtimeMs < sources || readFileSync(stamp, 'utf8') !== lockHash) {
  console.error('bundling …');
  const { bundle } = await import('./bundle.mjs');
  const { buildConsole } = await import('./console.mjs');
  await Promise.all([bundle(), buildConsole()]);
  writeFileSync(stamp, lockHash);
}

// Once for each version of Node that runs here. A copy that nobody may write to starts without what it does not have.
const { compiledHere } = await import('./chunks.mjs');
if (!existsSync(compiledHere) && isWritable(join(root, 'dist'))) {
  const [, flags] = /^#!\S+ -S node (.*)/.exec(readFileSync(join(root, 'bin/annals'), 'utf8'));
  const status = run(process.execPath, [...flags.split(' '), join(root, 'scripts/compile.mjs')]);
  if (status !== 0) console.error('not all is compiled ahead: commands work, and take longer to start');
}

function isWritable(path) {
  try {
    accessSync(path, fileModes.W_OK);
    return true;
  } catch {
    return false;
  }
}
