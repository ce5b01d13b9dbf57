/** `console:test`: each view used as a person would. */
import type { Browser } from 'playwright-core';
import { hrefOf, show, signedIn, type Stage, watchPage } from './stage.ts';
import { viewsOf } from './views.ts';

export async function run(stage: Stage, browser: Browser): Promise<readonly string[]> {
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(20_000);
  const wrong = watchPage(page, stage.door.adminUrl);
  const step = async (what: string, act: () => Promise<unknown>): Promise<void> => {
    try {
      await act();
      console.log(`  ${what}`);
    } catch (error) {
      wrong.push(`${what}: ${(error as Error).message.split('\n')[0]}`);
    }
  };
  await signedIn(page, stage);
  const views = await viewsOf(page);
  for (const { name, href, ready } of views)
    await step(`view ${name}`, async () => {
      await show(page, href);
      await page.waitForSelector(ready);
    });
  const text = async (): Promise<string> => decodeURIComponent(page.url()).replaceAll('+', ' ');
  const say = async (holds: boolean | Promise<boolean>, otherwise: string): Promise<void> => {
    if (!(await holds)) throw new Error(otherwise);
  };

  await step('sorting rewrites the statement', async () => {
    await show(page, hrefOf('query', { sql: 'SELECT id, vessel, sum_insured FROM Cover AS OF CURRENT' }));
    await page.click('.headcell >> text=vessel');
    await page.waitForSelector('[aria-sort=ascending]');
    await say((await text()).includes('ORDER BY vessel'), 'the address does not say it');
    await page.click('.headcell >> text=vessel');
    await page.waitForSelector('[aria-sort=descending]');
  });
  await step('filtering rewrites the statement', async () => {
    await page.click('.grid .cell >> text="Aurelia"', { button: 'right' });
    await page.click('text=Only rows with this value');
    await page.waitForSelector('text=/^1 row$/');
    await say((await text()).includes("WHERE vessel = 'Aurelia'"), 'the address does not say it');
  });
  await step('a row opens its history by the keyboard', async () => {
    await page.focus('.grid');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=proven in this browser');
    await page.waitForSelector('[aria-label=version] dd >> text="curator"');
  });
  await step('the palette finds a type', async () => {
    await page.keyboard.press('Control+k');
    await page.keyboard.type('airp');
    await page.keyboard.press('Enter');
    await page.waitForSelector('.grid .row >> text=Adelaide');
  });
  await step('rows are exported', async () => {
    await page.click('text=Export');
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('dialog >> text=csv')]);
    await say(download.suggestedFilename() === 'rows.csv', 'another file came');
    await page.keyboard.press('Escape');
  });
  await step('a branch is forked, compared and deleted', async () => {
    await show(page, hrefOf('branches'));
    await page.fill('#fork', 'try');
    await page.click('text="Fork"');
    await page.waitForSelector('td >> text="try"');
    await page.click('tr:has-text("what-if") >> text=Compare');
    await page.waitForSelector('td >> text="Cover"');
    await page.click('tr:has-text("try") >> text=Delete');
    await page.fill('#doom', 'try');
    await page.click('text=Delete for good');
    await page.waitForSelector('td >> text="try"', { state: 'detached' });
  });
  await step('a change arrives while one watches', async () => {
    await show(page, hrefOf('watch', { sql: "SELECT id, insurer FROM Cover WHERE flag = 'Norway'" }));
    await page.click('text=Follow');
    await page.waitForSelector('[role=log] .tag');
    await page.evaluate(
      `fetch('/admin/console/api/ingest?object_type=Cover', { method: 'POST', headers: { 'content-type': 'application/json', 'x-annals-session': sessionStorage.getItem('annals-session:/admin/console') }, body: JSON.stringify({ id: 'zephyr', vessel: 'Zephyr', flag: 'Norway' }) })`,
    );
    await page.waitForSelector('[role=log] >> text=zephyr');
    await page.click('text=Stop');
  });
  await step('an answer is sealed and derived again', async () => {
    await show(page, hrefOf('exhibit', { sql: "SELECT insurer FROM Cover AS OF CURRENT WHERE id = 'brisa'" }));
    await page.fill('#title', 'Brisa');
    await page.click('text="Open"');
    await page.click('text="Seal"');
    await page.click('text=Derive again');
    await page.waitForSelector('text=the same bytes');
  });
  await step('the administrator acts as a clerk, who sees less, and stops', async () => {
    await show(page, hrefOf('tokens'));
    await page.click('tr:has-text("clerk") >> text=Act as');
    await page.fill('#reason', 'to see what a clerk sees');
    await page.click('dialog >> text="Act"');
    await page.waitForSelector('text=Acting as clerk');
    await show(page, hrefOf('query', { sql: 'SELECT id, amount FROM Claim AS OF CURRENT' }));
    await page.waitForSelector('text=/^2 rows$/');
    await page.click('.banner >> text=Stop');
    await page.waitForSelector('text=Acting as clerk', { state: 'detached' });
  });
  await step('one tenant offers rows, the other accepts, and both trees show it', async () => {
    const actAs = async (principal: string): Promise<void> => {
      await show(page, hrefOf('tokens'));
      await page.click(`tr:has-text("${principal}") >> text=Act as`);
      await page.fill('#reason', 'to see what is shared');
      await page.click('dialog >> text="Act"');
      await page.waitForSelector(`text=Acting as ${principal}`);
    };
    const stop = async (principal: string): Promise<void> => {
      await page.click('.banner >> text=Stop');
      await page.waitForSelector(`text=Acting as ${principal}`, { state: 'detached' });
    };
    await page.waitForSelector('nav >> text=in_force');
    await actAs('gus');
    await page.click('nav >> text=harbour → tern');
    await page.waitForSelector('text=resource.cargo == "cork"');
    await page.click('text="Accept"');
    await stop('gus');
    await actAs('ann');
    await page.click('nav >> text=harbour → tern');
    await page.click('text="Activate"');
    await page.waitForSelector('td >> text="active"');
    await page.click('text="Revoke"');
    await page.click('dialog >> text="Revoke"');
    await page.waitForSelector('td >> text="revoked"');
    await stop('ann');
  });
  await step('a policy is installed and deleted', async () => {
    await show(page, hrefOf('governance'));
    await page.fill('#policy-id', 'no-routes');
    await page.fill('textarea[aria-label=policy]', 'forbid(principal in Role::"clerk", action, resource is Route);');
    await page.click('text="Install"');
    await page.waitForSelector('h2 >> text=no-routes');
    await page.click('article:has-text("no-routes") >> text=Delete');
    await page.fill('#doom', 'no-routes');
    await page.click('text=Delete for good');
    await page.waitForSelector('h2 >> text=no-routes', { state: 'detached' });
  });
  await step('a policy is rehearsed, and nothing is installed', async () => {
    await show(page, hrefOf('governance'));
    await page.fill('#policy-id', 'no-norway');
    await page.fill(
      'textarea[aria-label=policy]',
      'forbid(principal, action == Action::"read", resource is Cover) when { resource.flag == "Norway" };',
    );
    await page.fill('textarea[aria-label=statements]', 'SELECT id, flag FROM Cover AS OF CURRENT;');
    await page.fill('#why', 'to see whom it touches');
    await page.click('text="Rehearse"');
    await page.waitForSelector('form[aria-label=rehearsal] details');
    await say((await page.locator('h2 >> text=no-norway').count()) === 0, 'it was installed');
  });
  await step('the receipt of an erasure is proven, and with one byte changed it is not', async () => {
    const call = (path: string, body: object): Promise<Record<string, unknown>> =>
      page.evaluate(
        `fetch('/admin/console/api${path}', { method: 'POST', headers: { 'content-type': 'application/json', 'x-annals-session': sessionStorage.getItem('annals-session:/admin/console') }, body: ${JSON.stringify(JSON.stringify(body))} }).then((reply) => reply.json())`,
      );
    await call('/types', {
      name: 'Visit',
      primary_key: 'id',
      properties: { id: 'string', person: { type: 'string', subject: true } },
    });
    await call('/ingest?object_type=Visit', { id: 'v1', person: 'ada.l' });
    const erased = await call('/query', { sql: "ERASE SUBJECT 'ada.l' REASON 'request 17' CERTIFY" });
    const [row] = erased['rows'] as { receipt: object; verification_key: string; salt: string }[];
    await show(page, hrefOf('receipt'));
    await page.fill('#receipt', JSON.stringify(row!.receipt));
    await page.fill('#erasure-key', row!.verification_key);
    await page.fill('#subject', 'ada.l');
    await page.fill('#salt', row!.salt);
    await page.click('text="Check"');
    await page.waitForSelector('text=proven in this browser');
    await page.click('text=Change one byte');
    await page.waitForSelector('.tag.bad >> text=not proven');
  });
  await step('leaving ends the session', async () => {
    await page.click('text=Sign out');
    await page.waitForSelector('text=Admin credential');
  });
  return wrong;
}
