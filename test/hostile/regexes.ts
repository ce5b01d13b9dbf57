/**
 * `npm run regexes [-- --install]`: whether a text can be chosen for which a regular expression of `src` takes more than linear time
 * (recheck 4.5.0, which `--install` fetches without saving it). Prints each one that is not known to be harmless; exit code 1 where there is one.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

interface Diagnosis {
  readonly status: 'safe' | 'vulnerable' | 'unknown';
  readonly complexity?: { readonly summary: string };
  readonly attack?: { readonly pattern: string };
}
type Check = (source: string, flags: string, limits: { readonly timeout: number }) => Promise<Diagnosis>;

/** Why these take no longer than they may, by their text. */
const harmless: ReadonlyMap<string, string> = new Map([
  ['/[ ,;:.!?]+$/', 'of the last 200 characters of a question'],
  ['/[ ,]+(?:please|pls|thanks|thank you)$/i', 'of the last 200 characters of a question'],
  [
    String.raw`/[ ,]+(?:and )?as of (\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z)?)$/i`,
    'of the last 200 characters of a question',
  ],
  [
    String.raw`/"([^"]{1,200})"|“([^”]{1,200})”|‘([^’]{1,200})’|(?<![\p{L}\p{N}])'((?:[^']|'(?=[\p{L}\p{N}])){1,200})'(?![\p{L}\p{N}])/gu`,
    'at most 200 characters from each of 10,000',
  ],
  [
    String.raw`/(?<![a-z0-9!#$%&'*+/=?^_` +
      '`' +
      String.raw`{|}~-])[a-z0-9!#$%&'*+/=?^_` +
      '`' +
      String.raw`{|}~-][a-z0-9!#$%&'*+/=?^_` +
      '`' +
      String.raw`{|}~.-]{0,63}@[\p{L}\p{N}][\p{L}\p{N}.-]{1,252}[\p{L}\p{N}]/giu`,
    'at most 64 characters from each dot',
  ],
  [
    String.raw`/(?:https?:\/\/)?(?<![\w.-])[\w.-]+\.(?:com|org|net|io|me|dev|co|info|[a-z]{2})(?:\/\S*)?|(?<![\w.+-])[\w.+-]+@[\w.-]+/gi`,
    'begins where a word does: each character is met twice',
  ],
]);

const root = fileURLToPath(new URL('../../src/', import.meta.url));
const literal = /(?<=[=(,:[!&|?{};\s])\/(?![*/])((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)/g;

function regexesIn(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const file of readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))) {
    for (const [i, line] of readFileSync(root + file, 'utf8')
      .split('\n')
      .entries()) {
      if (/^\s*(?:\/\/|\*|\/\*)/.test(line)) continue;
      for (const { 0: text, 1: source, 2: flags, index } of line.matchAll(literal)) {
        if (!isRegex(source!, flags!) || isQuoted(line.slice(0, index))) continue;
        found.set(text, [...(found.get(text) ?? []), `${file}:${i + 1}`]);
      }
    }
  }
  return found;
}

const isQuoted = (before: string): boolean => ["'", '`'].some((quote) => before.split(quote).length % 2 === 0);

function isRegex(source: string, flags: string): boolean {
  try {
    return new RegExp(source, flags) instanceof RegExp;
  } catch {
    return false;
  }
}

const name = 'recheck';
if (process.argv.includes('--install')) {
  execFileSync('npm', ['install', '--no-save', '--no-package-lock', `${name}@4.5.0`], { stdio: 'inherit' });
}
const { check } = (await import(name).catch(() => {
  throw new Error('recheck is not there: npm run regexes -- --install');
})) as { check: Check };
const regexes = regexesIn();
let beyond = 0;
for (const [text, places] of regexes) {
  if (harmless.has(text)) continue;
  const end = text.lastIndexOf('/');
  const { status, complexity, attack } = await check(text.slice(1, end), text.slice(end + 1), { timeout: 30_000 });
  if (status === 'safe') continue;
  beyond++;
  console.log(`${status} ${complexity?.summary ?? ''} ${text} ${places.join(' ')} ${attack?.pattern ?? ''}`);
}
console.log(JSON.stringify({ suite: 'regexes', regexes: regexes.size, harmless: harmless.size, beyond }));
process.exitCode = beyond > 0 ? 1 : 0;
