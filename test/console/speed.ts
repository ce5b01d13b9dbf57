/** `console:speed`: how much is sent, how soon the page answers, and that a million rows hold nothing up. Fails beyond its bounds. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, Page } from 'playwright-core';
import { hrefOf, show, signedIn, storiesOf, type Stage } from './stage.ts';

const folder = join(import.meta.dirname, '../../dist/console');
const KiB = 1024;
const rows = 1_000_000;

export async function run(stage: Stage, browser: Browser): Promise<readonly string[]> {
  const wrong: string[] = [];
  const figure = (name: string, value: number, max: number, unit: string): void => {
    console.log(`  ${name.padEnd(44)} ${value.toFixed(1).padStart(8)} of ${max} ${unit}`);
    if (!(value <= max)) wrong.push(`${name}: ${value.toFixed(1)} ${unit}, more than ${max}`);
  };
  sizes(figure);
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await signedIn(page, stage);
  figure('interactive after a reload, median of 7', await interactive(page), 500, 'ms');
  figure('a keystroke in the editor, p95', await keystroke(page), 16, 'ms');
  figure('a step of a slider until it is painted, p95', await sliderStep(page), 100, 'ms');
  await fill(page);
  const { longest, heap } = await scroll(page);
  figure(`longest task while ${rows} rows scroll`, longest, 50, 'ms');
  figure('memory of the page that shows them', heap / KiB / KiB, 300, 'MiB');
  return wrong;
}

/** As they are sent to whoever asks for them compressed. */
function sizes(figure: (name: string, value: number, max: number, unit: string) => void): void {
  const { entry } = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as { entry: string };
  const zipped = (name: string): number => gzipSync(readFileSync(join(folder, name)), { level: 9 }).length;
  const shell = new Set<string>();
  const take = (name: string): void => {
    if (shell.has(name)) return;
    shell.add(name);
    // What a file imports at once, not what it loads on demand.
    const text = readFileSync(join(folder, name), 'utf8');
    for (const [, path] of text.matchAll(/(?:\bfrom|\bimport)\s*"\.\/([\w.-]+)"/g)) take(path!);
  };
  take(entry);
  const sum = (names: Iterable<string>): number => [...names].reduce((all, name) => all + zipped(name), 0) / KiB;
  figure('the shell, compressed', sum([...shell, 'style.css']), 60, 'KiB');
  const all = readdirSync(folder).filter((name) => name !== 'manifest.json');
  figure('everything, compressed', sum(all), 400, 'KiB');
}

async function interactive(page: Page): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 7; i++) {
    await page.reload();
    await page.waitForSelector('section[aria-label=stories] a');
    times.push(
      await page.evaluate<number>(
        'new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()))))',
      ),
    );
  }
  return quantile(times, 0.5);
}

/** The work of its events, and the layout that follows. */
async function keystroke(page: Page): Promise<number> {
  await show(page, hrefOf('query', { sql: 'SELECT * FROM Cover' }));
  await page.waitForSelector('.cm-content');
  await page.waitForSelector('.grid .row');
  await page.locator('.cm-content').click();
  await page.waitForTimeout(300);
  await page.evaluate(`
    window.keys = [];
    let at = 0;
    addEventListener('keydown', () => { at = performance.now(); }, true);
    new MutationObserver(() => { document.body.offsetHeight; if (at > 0) keys.push(performance.now() - at); at = 0; })
      .observe(document.querySelector('.editor > div').shadowRoot.querySelector('.cm-content'), { subtree: true, childList: true, characterData: true });
  `);
  await page.keyboard.press('Control+End');
  for (const key of " WHERE vessel = 'Aurelia' AND insurer IN ('Northgate Mutual', 'Baltic')") {
    await page.keyboard.press(key === ' ' ? 'Space' : key);
    await page.waitForTimeout(20);
  }
  const keys = await page.evaluate<number[]>('keys');
  return keys.length < 40 ? Number.NaN : quantile(keys, 0.95);
}

async function sliderStep(page: Page): Promise<number> {
  await show(page, (await homeStories(page))[0]!);
  await page.waitForSelector('.grid .row');
  await page.waitForSelector('#slider-Believed');
  const times = await page.evaluate<number[]>(`(async () => {
    const times = [];
    for (let i = 0; i < 60; i++) {
      const slider = document.querySelector('#slider-Believed');
      const before = document.querySelector('[role=status][aria-busy]');
      const next = (Number(slider.value) + 1) % (Number(slider.max) + 1);
      const began = performance.now();
      slider.value = String(next);
      slider.dispatchEvent(new Event('input', { bubbles: true }));
      const text = before.textContent;
      for (;;) {
        await new Promise((resolve) => requestAnimationFrame(resolve));
        const status = document.querySelector('[role=status][aria-busy]');
        if (status.getAttribute('aria-busy') === 'false' && status.textContent !== text) break;
        if (performance.now() - began > 5000) break;
      }
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      times.push(performance.now() - began);
    }
    return times;
  })()`);
  return quantile(times, 0.95);
}

async function homeStories(page: Page): Promise<string[]> {
  await show(page, hrefOf('home'));
  await page.waitForSelector('section[aria-label=stories] a');
  return storiesOf(page);
}

/** A million rows, by ordinary ingest. */
async function fill(page: Page): Promise<void> {
  const batch = 50_000;
  for (let first = 0; first < rows; first += batch) {
    const status = await page.evaluate<number>(`fetch('/admin/console/api/ingest/auto?object_type=Million&primary_key=id', {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson', 'x-annals-session': sessionStorage.getItem('annals-session:/admin/console') },
      body: Array.from({ length: ${batch} }, (_, i) => {
        const n = ${first} + i;
        return JSON.stringify({ id: 'r' + n, city: 'city ' + (n % 977), amount: n % 100003, weight: (n % 1000) / 8 });
      }).join('\\n'),
    }).then((reply) => reply.status)`);
    if (status !== 200) throw new Error(`ingest is answered with ${status}`);
  }
}

async function scroll(page: Page): Promise<{ longest: number; heap: number }> {
  await show(page, hrefOf('query', { sql: 'SELECT id, city, amount, weight FROM Million AS OF CURRENT' }));
  await page.waitForSelector(`.grid[aria-rowcount="${rows}"] .row`, { timeout: 120_000 });
  await page.waitForTimeout(500);
  const longest = await page.evaluate<number>(`(async () => {
    let longest = 0;
    const observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) longest = Math.max(longest, duration);
    });
    observer.observe({ type: 'longtask', buffered: false });
    const grid = document.querySelector('.grid');
    for (let i = 0; i < 240; i++) {
      grid.scrollTop = i < 120 ? i * 90 : ((i * 7919) % 1000) / 1000 * grid.scrollHeight;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    observer.disconnect();
    return longest;
  })()`);
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.enable');
  await session.send('HeapProfiler.collectGarbage');
  const usage = (await session.send('Runtime.getHeapUsage')) as { usedSize: number; backingStorageSize?: number };
  return { longest, heap: usage.usedSize + (usage.backingStorageSize ?? Number.NaN) };
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}
