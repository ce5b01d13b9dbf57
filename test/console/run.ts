/**
 * The pages in a browser, on the demonstration:
 *
 *   npm run console:test     every view used as a person would
 *   npm run console:shots    pictures of each view, light and dark, wide and narrow, in dist/shots
 *   npm run console:a11y     axe on each view and theme
 *   npm run console:hostile  values, names and addresses that attack
 *   npm run console:proofs   one verdict in browser and Node
 *   npm run console:speed    sizes, and how soon the page answers; beyond the bounds it fails
 */
import { browserPath, openBrowser, Stage } from './stage.ts';

const parts: Readonly<
  Record<
    string,
    () => Promise<{ run(stage: Stage, browser: Awaited<ReturnType<typeof openBrowser>>): Promise<readonly string[]> }>
  >
> = {
  test: () => import('./walk.ts'),
  shots: () => import('./shots.ts'),
  a11y: () => import('./a11y.ts'),
  hostile: () => import('./hostile.ts'),
  proofs: () => import('./proofs.ts'),
  speed: () => import('./speed.ts'),
};

const [name = ''] = process.argv.slice(2);
const load = parts[name];
if (load === undefined || browserPath === null) {
  console.error(
    load === undefined ? `one of ${Object.keys(parts).join(', ')}` : 'no chromium is installed: name one by CHROMIUM',
  );
  process.exit(2);
}
const began = performance.now();
const [stage, browser] = await Promise.all([Stage.open(), openBrowser()]);
try {
  const wrong = await (await load()).run(stage, browser);
  for (const each of wrong) console.error(`WRONG ${each}`);
  console.log(
    `console:${name}: ${wrong.length === 0 ? 'nothing' : wrong.length} wrong, ${((performance.now() - began) / 1000).toFixed(1)} s`,
  );
  process.exitCode = wrong.length === 0 ? 0 : 1;
} finally {
  await browser.close();
  await stage.close();
}
