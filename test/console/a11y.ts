/** `console:a11y`: axe on each view and theme, and the first story by keyboard alone. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { show, signedIn, type Stage } from './stage.ts';
import { viewsOf } from './views.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary: string }[];
}

export async function run(stage: Stage, browser: Browser): Promise<readonly string[]> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await signedIn(page, stage);
  const wrong: string[] = [];
  for (const { name, href, ready } of await viewsOf(page)) {
    await show(page, href);
    await page.waitForSelector(ready, { timeout: 20_000 }).catch(() => wrong.push(`${name} shows nothing`));
    for (const theme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      for (const { id, nodes } of await violations(page))
        wrong.push(
          `${name}, ${theme}: ${id} at ${JSON.stringify(nodes[0]?.target)}: ${nodes[0]?.failureSummary.split('\n')[1]?.trim()}`,
        );
    }
    console.log(`  ${name}`);
  }
  await byKeyboard(page).catch((error: Error) => wrong.push(`the first story by keyboard: ${error.message.split('\n')[0]}`));
  return wrong;
}

async function violations(page: Page): Promise<readonly Violation[]> {
  await page.evaluate(axe);
  return await page.evaluate<readonly Violation[]>('axe.run(document).then((report) => report.violations)');
}

/** From the start to the story's sliders, with Tab, Enter and arrows. */
async function byKeyboard(page: Page): Promise<void> {
  await show(page, '#/home');
  await page.waitForSelector('section[aria-label=stories] a');
  const reach = async (selector: string): Promise<void> => {
    for (let i = 0; i < 120; i++) {
      await page.keyboard.press('Tab');
      if (await page.evaluate<boolean>(`document.activeElement?.matches(${JSON.stringify(selector)}) ?? false`)) return;
    }
    throw new Error(`${selector} is not reached`);
  };
  await page.evaluate('document.activeElement?.blur()');
  await reach('section[aria-label=stories] a');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.grid .row >> text=cancelled');
  await page.evaluate('document.activeElement?.blur()');
  await reach('#slider-Believed');
  await page.keyboard.press('Home');
  await page.waitForSelector('.grid .row >> text=Northgate Mutual');
}
