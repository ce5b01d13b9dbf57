/** `console:proofs`: the verifier gives one verdict in the browser and in Node, on every document and on flipped bits of them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createHash } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { signedIn, type Stage } from './stage.ts';

const root = join(import.meta.dirname, '../..');
const folder = join(root, 'fixtures/proofs');
const flips = 10_000;
const batch = 250;

interface Case {
  readonly text: string;
  readonly key: string;
}

type Verify = (text: string, key: string, held: string | null) => readonly string[];

const verdictOf = (verify: Verify, { text, key }: Case): string => {
  try {
    return verify(text, key, null).join('\n');
  } catch (error) {
    return `not proven: ${(error as Error).message}`;
  }
};

export async function run(stage: Stage, browser: Browser): Promise<readonly string[]> {
  const page = await browser.newPage();
  await signedIn(page, stage);
  const wrong: string[] = [];
  const { verifyProof } = (await import('../../verify/annals-verify.mjs' as string)) as { verifyProof: Verify };
  const files = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => /\.(json|key|txt|pub)$/.test(name));
  const keys = files.filter((name) => /\.(key|pub)$/.test(name)).map((name) => readFileSync(join(folder, name), 'utf8'));
  const key = keys[0] ?? '';
  const documents = files
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({ text: readFileSync(join(folder, name), 'utf8'), key }));
  await page.evaluate(
    `import(${JSON.stringify(await chunkOf(page))}).then((module) => module.loadVerifier()).then((verifier) => { window.verifier = verifier; })`,
  );
  const digest = createHash('sha256')
    .update(readFileSync(join(root, 'verify/annals-verify.mjs')))
    .digest('hex');
  if ((await page.evaluate<string>('window.verifier.sha256')) !== digest) wrong.push('the page runs another file');
  const cases: Case[] = [...documents];
  let state = 7;
  for (let i = 0; documents.length > 0 && i < flips; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    const { text } = documents[i % documents.length]!;
    const bytes = Buffer.from(text);
    bytes[state % bytes.length]! ^= 1 << ((state >> 8) % 7);
    cases.push({ text: bytes.toString('utf8'), key });
  }
  for (let from = 0; from < cases.length; from += batch) {
    const some = cases.slice(from, from + batch);
    const theirs = await page.evaluate<readonly string[]>(
      `(${JSON.stringify(some)}).map(({ text, key }) => { try { return window.verifier.verifyProof(text, key, null).join('\\n'); } catch (error) { return 'not proven: ' + error.message; } })`,
    );
    for (const [i, each] of some.entries()) {
      const ours = verdictOf(verifyProof, each);
      // Engines word what JSON.parse refuses differently.
      const plain = (verdict: string): string => verdict.replace(/malformed: .*/s, 'malformed');
      if (plain(theirs[i]!) !== plain(ours)) wrong.push(`case ${from + i}: ${theirs[i]} | ${ours}`);
    }
  }
  const proven = documents.filter((each) => !verdictOf(verifyProof, each).startsWith('not proven')).length;
  console.log(`  ${documents.length} documents, ${proven} proven, ${cases.length - documents.length} with a flipped bit`);
  return wrong;
}

/** The built file that exports the verifier's loader. */
async function chunkOf(page: import('playwright-core').Page): Promise<string> {
  const map = await page.evaluate<Record<string, string>>(
    'JSON.parse(document.querySelector("script[type=importmap]").textContent).integrity',
  );
  const [name] = Object.keys(map).filter((each) => /\/verifier-/.test(each));
  return name!;
}
