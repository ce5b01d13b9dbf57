/** The first story and a proof, in a browser; skipped where none is installed. All views: `npm run console:test`. */
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { browserPath, hrefOf, openBrowser, show, signedIn, Stage, storiesOf, watchPage } from './stage.ts';

if (browserPath === null) console.log('the pages are not looked at: no chromium is installed (or name one by CHROMIUM)');
const look = test.skipIf(browserPath === null);

let stage: Stage;
let browser: Browser;
let page: Page;
let wrong: string[];
beforeAll(async () => {
  if (browserPath === null) return;
  [stage, browser] = await Promise.all([Stage.open(), openBrowser()]);
  page = await browser.newPage();
  wrong = watchPage(page, stage.door.adminUrl);
  await signedIn(page, stage);
});
afterAll(async () => {
  await browser?.close();
  await stage?.close();
});

look('the link signs in and leaves no code in the address', () => {
  expect(page.url()).not.toContain('code');
  expect(new URL(page.url()).search).toBe('');
});

look('moving what was believed changes the statement and its answer', async () => {
  await show(page, (await storiesOf(page))[0]!);
  await page.waitForSelector('.grid .row >> text=cancelled');
  const slider = page.getByLabel('Believed');
  await slider.focus();
  await slider.press('Home');
  await page.waitForSelector('.grid .row >> text=Northgate Mutual');
  await slider.press('End');
  await page.waitForSelector('.grid .row >> text=Baltic Indemnity');
  expect(decodeURIComponent(page.url())).toContain("AS+OF+'2024-03-10'");
});

look('a proof is checked in the page, and fails with one byte changed', async () => {
  await show(page, hrefOf('row', { type: 'Cover', key: 'aurelia' }));
  await page.waitForSelector('text=proven in this browser');
  expect(await page.locator('svg .version').count()).toBe(5);
  await page.click('text=Change one byte');
  await page.waitForSelector('text=row_hash is not the hash of the salt and the row');
});

look('an error stands at its line and column, and a masked cell looks masked', async () => {
  await show(page, hrefOf('query', { sql: 'SELECT vessl FROM Cover' }));
  await page.waitForSelector('.problem >> text=did you mean vessel');
  await show(page, hrefOf('query', { sql: 'SELECT id, iban FROM Claim AS OF CURRENT' }));
  await page.waitForSelector('.grid .masked');
});

look('nothing else went wrong', () => {
  expect(wrong).toEqual([]);
});
