/** `console:shots`: each view as a picture. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { show, signedIn, type Stage } from './stage.ts';
import { viewsOf } from './views.ts';

const folder = join(import.meta.dirname, '../../dist/shots');

export async function run(stage: Stage, browser: Browser): Promise<readonly string[]> {
  mkdirSync(folder, { recursive: true });
  const wrong: string[] = [];
  const page = await browser.newPage();
  await signedIn(page, stage);
  for (const { name, href, ready } of await viewsOf(page)) {
    await show(page, href);
    await page.waitForSelector(ready, { timeout: 20_000 }).catch(() => wrong.push(`${name} shows nothing`));
    for (const theme of ['light', 'dark'] as const)
      for (const width of [1440, 390]) {
        await page.emulateMedia({ colorScheme: theme });
        await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
        await page.waitForTimeout(200);
        await page.screenshot({ path: join(folder, `${name}-${theme}-${width}.png`) });
      }
  }
  console.log(folder);
  return wrong;
}
