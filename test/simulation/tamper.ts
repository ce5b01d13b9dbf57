/**
 * Every single-bit flip of a closed log, and every other tampering:
 *
 *   npm run tamper -- --bytes 65536 [--seed 1] [--json]
 *
 * One line of JSON; exit code 1 when anything went unseen.
 */
import { parseArgs } from 'node:util';
import { check, flipEveryBit, sealedLog, tamperings } from './tampering.ts';

const { values: options } = parseArgs({
  options: {
    bytes: { type: 'string', default: '65536' },
    seed: { type: 'string', default: '1' },
    clean: { type: 'string', default: '1000' },
    json: { type: 'boolean', default: false },
  },
});

const started = performance.now();
const [bytes, seed] = [Number(options.bytes), Number(options.seed)];
const log = await sealedLog(seed, bytes);
const keys = new Map([...log.image.files].filter(([path]) => path.includes('/keys/')));
const other = await sealedLog(seed + 1, bytes, { directories: log.image.directories, files: keys });
const later = await sealedLog(seed + 2, bytes * 2, log.image);

let said = 0;
const flips = await flipEveryBit(log, {
  onByte: (done, total) => {
    if (options.json || performance.now() - said < 10_000) return;
    said = performance.now();
    console.error(`${done} of ${total} bytes`);
  },
});

const missed = [...flips.missed];
let tampered = 0;
for (const { name, image, held, tailOnly } of tamperings(log, other, later)) {
  tampered++;
  const report = await check(image, log, { keys: false, held: held ?? [] });
  if (tailOnly ? report.notes.length === 0 : report.ok) missed.push(name);
}

let falseAlarms = 0;
for (let i = 0; i < Number(options.clean); i++) {
  const clean = await sealedLog(seed + 10 + i, 2048);
  for (const withKeys of [true, false]) {
    const report = await check(clean.image, clean, { keys: withKeys, held: [clean.checkpoint] });
    if (!report.ok) falseAlarms++;
  }
}

console.log(
  JSON.stringify({
    bits: flips.bits,
    found: flips.bits - flips.missed.length,
    misplaced: flips.misplaced.length,
    tamperings: tampered,
    missed: missed.slice(0, 20),
    cleanLogs: Number(options.clean),
    falseAlarms,
    seconds: Math.round((performance.now() - started) / 100) / 10,
  }),
);
process.exit(missed.length + flips.misplaced.length + falseAlarms > 0 ? 1 : 0);
