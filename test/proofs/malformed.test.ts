/** Whatever a file holds ends in a verdict on it: never in an error of the language that the verifier is written in. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { ErasureWorld } from '../governance/erasure/erasure-world.ts';
import { Seeded } from '../simulation/seeded.ts';
import { naiveSays, verifierPath } from './judges.ts';

const verifier = (await import(verifierPath)) as {
  readonly NotProven: new () => Error;
  verifyProof(proof: string, key: string, held?: string | null): string[];
  verifyReceipt(receipt: string, key: string, erasureKey: string): string[];
  main(args: readonly string[]): number;
};

const fixture = (name: string): string => readFileSync(new URL(`../../fixtures/proofs/v1/${name}`, import.meta.url), 'utf8');
const key = fixture('log.key');
const home = mkdtempSync(join(tmpdir(), 'annals-malformed-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** In place of any value: other types, numbers beyond every range, texts that are no base64, what is nested deeply. */
const junk: readonly string[] = [
  'null',
  'true',
  '-1',
  '0.5',
  '1e400',
  '-1e400',
  '9007199254740993',
  '1e21',
  '""',
  '"%%%"',
  '"AAAA"',
  '"\\ud800"',
  '"\\u0000"',
  '[]',
  '[null]',
  '[[]]',
  '{}',
  '{"__proto__":null}',
  `"${'A'.repeat(5_000)}"`,
  `${'['.repeat(2_000)}${']'.repeat(2_000)}`,
];

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Every way from the root to a value. */
function* waysIn(value: Json, way: readonly (string | number)[] = []): Generator<readonly (string | number)[]> {
  if (typeof value !== 'object' || value === null) return;
  for (const name of Array.isArray(value) ? [0].slice(0, value.length) : Object.keys(value)) {
    yield [...way, name];
    yield* waysIn((value as Record<string | number, Json>)[name]!, [...way, name]);
  }
}

/** The document with the text of one value in place of another, or without it. */
function withJunk(document: Json, way: readonly (string | number)[], text: string | null): string {
  const copy = structuredClone(document) as Record<string | number, Json>;
  const at = way.slice(0, -1).reduce<Record<string | number, Json>>((from, name) => from[name] as Record<string, Json>, copy);
  const last = way[way.length - 1]!;
  if (text === null) {
    if (Array.isArray(at)) at.splice(last as number, 1);
    else delete at[last];
    return JSON.stringify(copy);
  }
  at[last] = '\u0001here';
  return JSON.stringify(copy).replace('"\\u0001here"', () => text);
}

function* mutations(text: string, random: Seeded): Generator<string> {
  const document = JSON.parse(text) as Json;
  for (const whole of junk) yield whole;
  for (const way of waysIn(document)) {
    yield withJunk(document, way, null);
    for (const each of junk) yield withJunk(document, way, each);
  }
  for (let i = 0; i < 80; i++) {
    const at = random.below(text.length);
    yield text.slice(0, at);
    yield text.slice(0, at) + String.fromCharCode(random.below(256)) + text.slice(at + random.below(4));
  }
}

/** The verifier's verdict, which the one that shares no line with it must share. */
function bothJudge(proof: string): string[] {
  const agrees = naiveSays({ name: '', proof: Buffer.from(proof), key, head: null, good: false });
  try {
    const said = verifier.verifyProof(proof, key);
    expect([proof, agrees]).toEqual([proof, true]);
    return said;
  } catch (error) {
    expect([proof, agrees]).toEqual([proof, false]);
    throw error;
  }
}

/** Verdicts on all of them; what proves something must say the very same as the file that it was made of. */
function judgeAll(text: string, judge: (mutated: string) => string[]): { refused: number; proven: string[] } {
  const said = judge(text);
  const same = (a: string, b: string): boolean => JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b));
  // A claim that is optional may be left out as a whole: less is proven then, and said.
  const without = [{ consistency: undefined }, { row: undefined }, { branch: undefined }, { position: null }];
  const less = without.map((claim) => JSON.stringify({ ...(JSON.parse(text) as object), ...claim }));
  const proven: string[] = [];
  let refused = 0;
  for (const mutated of mutations(text, new Seeded(7))) {
    let says: string[];
    try {
      says = judge(mutated);
    } catch (error) {
      if (!(error instanceof verifier.NotProven)) throw error;
      refused++;
      continue;
    }
    if (!says.every((line) => said.includes(line)) || ![text, ...less].some((other) => same(other, mutated)))
      proven.push(mutated);
  }
  return { refused, proven };
}

test.each(['entry.json', 'row.json', 'branch.json', 'growth.json'])(
  '%s: every mutation is refused, by both verifiers',
  (name) => {
    const { refused, proven } = judgeAll(fixture(name), bothJudge);
    expect(refused).toBeGreaterThan(300);
    expect(proven).toEqual([]);
  },
);

test('the hint of what was pruned is no claim that a file can make', () => {
  const changed = fixture('row.json').replace('"minimum_index": 0', '"minimum_index": 5');
  expect(() => verifier.verifyProof(changed, key)).toThrow(/^malformed: the proof: minimum_index is not 0/);
});

test('receipts: every mutation is refused', async () => {
  const world = await (await new ErasureWorld().open()).fill();
  const { receipt, key: erasureKey } = await world.erase();
  const { refused, proven } = judgeAll(JSON.stringify(receipt), (text) => verifier.verifyReceipt(text, world.logKey, erasureKey));
  expect(refused).toBeGreaterThan(100);
  expect(proven).toEqual([]);
  await world.store.service.close();
});

test.each([
  ['nothing', '', /^NOT PROVEN: malformed: /],
  ['no JSON', '{"leaf":', /^NOT PROVEN: malformed: /],
  ['a list', '[]', /^NOT PROVEN: malformed: the proof is not an object/],
  ['no members', '{}', /^NOT PROVEN: malformed: the proof: position is not/],
  ['bytes that are no text', '\xff\xfe', /^NOT PROVEN: malformed: /],
])('the command, of %s: the verdict and its exit code, no stack', (_, text, verdict) => {
  const path = join(home, 'proof.json');
  writeFileSync(path, text, 'latin1');
  let said = '';
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((chunk) => {
    said += String(chunk);
    return true;
  });
  const code = verifier.main([path, '--key', key.trim()]);
  write.mockRestore();
  expect([code, said.trimEnd().split('\n').length]).toEqual([1, 1]);
  expect(said).toMatch(verdict);
});
