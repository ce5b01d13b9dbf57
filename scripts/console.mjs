// Builds the pages of console/ into dist/console: scripts under names that hold a hash of their content, and a list of them.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'console');
const target = join(root, 'dist/console');

export async function buildConsole() {
  mkdirSync(target, { recursive: true });
  for (const name of readdirSync(target)) rmSync(join(target, name));
  const { metafile } = await build({
    entryPoints: [join(source, 'main.tsx')],
    outdir: target,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    metafile: true,
    logLevel: 'warning',
    absWorkingDir: root,
  });
  const outputs = Object.entries(metafile.outputs);
  const [entry] = outputs.find(([, { entryPoint }]) => entryPoint === 'console/main.tsx');
  // The verifier goes out byte for byte, so that its digest is that of the file which is handed over with proofs.
  const verifier = readFileSync(join(root, 'verify/annals-verify.mjs'));
  const verifierName = `annals-verify-${createHash('sha256').update(verifier).digest('hex').slice(0, 8)}.mjs`;
  writeFileSync(join(target, verifierName), verifier);
  const styles = await build({
    entryPoints: [join(source, 'style.css')],
    minify: true,
    write: false,
    logLevel: 'warning',
    target: 'chrome123',
  });
  writeFileSync(join(target, 'style.css'), styles.outputFiles[0].text);
  const names = [...outputs.map(([path]) => basename(path)), verifierName];
  writeFileSync(
    join(target, 'manifest.json'),
    JSON.stringify({ entry: basename(entry), names, aliases: { 'annals-verify': verifierName } }),
  );
}
