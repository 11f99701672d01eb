import { answerTo } from './support/answer.ts';
import { enter, expect, fillSignIn, forgive, navigation, signIn, tab, test } from './support/test.ts';
import { PASSWORD } from './support/site.ts';
import { giveOnce, LEFT_S } from './support/token.ts';
import * as t from './support/texts.ts';

test('a person stays signed in when the page is reloaded, with no token where a script or a log finds it', async ({
  page,
  account,
  site,
}) => {
  const asked: string[] = [];
  const opened: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('websocket', (socket) => opened.push(socket.url()));
  await signIn(page, account);
  await site.server(account, 'known');
  await expect(page.getByRole('link', { name: 'known' })).toBeVisible();

  await page.reload();

  await expect(page.getByRole('link', { name: 'known' })).toBeVisible();
  await expect.poll(() => opened.length).toBeGreaterThan(0);
  const cookies = await page.context().cookies();
  expect(cookies.map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite }))).toEqual([
    { httpOnly: true, sameSite: 'Strict' },
  ]);
  const kept = await page.evaluate(() =>
    [
      document.cookie,
      JSON.stringify({ ...localStorage }),
      JSON.stringify({ ...sessionStorage }),
      JSON.stringify(history.state),
      location.href,
    ].join('\n'),
  );
  for (const place of [kept, ...asked, ...opened]) {
    // A token has three parts. Its first letters alone may stand in the name of a file, which is a hash.
    expect(place).not.toMatch(/eyJ[\w-]+\.[\w-]+\./);
    expect(place).not.toContain(cookies[0]?.value);
    expect(place).not.toContain(PASSWORD);
  }
});

test('a token that expires is renewed without anybody noticing, on sockets too', async ({ page, account, site }) => {
  await enter(page, account, '/alerts');
  await expect(navigation(page)).toBeVisible();
  const server = await site.server(account, 'going-on');
  await site.agent(account, server);
  // The page takes it for one that lasts an hour: it is the service that says it ends.
  const token = await giveOnce(page, site, { issued: -3600, expires: LEFT_S });
  const samples: number[] = [];
  let renewed = 0;
  let closed = 0;
  page.on('websocket', (socket) => {
    // On whichever socket renews first: one that is opened later has the new token already.
    socket.on('framesent', ({ payload }) => {
      if (payload.includes('"auth"')) renewed += 1;
    });
    if (!socket.url().includes(`/ws/metrics/${server.id}`)) return;
    socket.on('framereceived', ({ payload }) => {
      if (payload.includes('"metrics"')) samples.push(Date.now());
    });
    socket.on('close', () => (closed += 1));
  });
  await page.goto(`/servers/${server.id}`);
  await expect(page.getByText(t.status.online(), { exact: true })).toBeVisible();

  // Samples come on the socket that was opened with the token that has expired since.
  await expect.poll(() => samples.some((at) => at > token.expiresAt), { timeout: 60_000 }).toBe(true);
  expect(renewed).toBeGreaterThan(0);
  expect(closed).toBe(0);
  await tab(page, t.server.keys()).click();
  await expect(page.getByRole('cell', { name: 'going-on', exact: true })).toBeVisible();
  await expect(page.getByText(t.status.online(), { exact: true })).toBeVisible();
});

test('a request that is refused because its token has expired is made again with a new one', async ({
  page,
  account,
  site,
  faults,
}) => {
  await enter(page, account, '/alerts');
  await expect(navigation(page)).toBeVisible();
  await site.server(account, 'still-here');
  await giveOnce(page, site, { issued: -3600, expires: -5 });
  // What is refused may be a socket, whose answer no event reports. The page takes the token for one that lasts: it asks for another
  // only because it was refused.
  let given = 0;
  page.on('response', (response) => {
    if (response.url().endsWith('/auth/refresh')) given += 1;
  });

  await page.goto('/');

  await expect(page.getByRole('link', { name: 'still-here' })).toBeVisible();
  expect(given).toBeGreaterThan(1);
  forgive(faults, /HTTP Authentication failed/);
});

test('a sign-in that has ended leads to the door, and from there back', async ({ page, account, site }) => {
  const server = await site.server(account, 'wanted');
  await enter(page, account, '/alerts');
  await expect(navigation(page)).toBeVisible();
  // The second time that a token is asked for, the cookie is gone.
  await page.route('**/api/v1/auth/refresh', async (route) => {
    await page.context().clearCookies();
    const { cookie: _, ...headers } = await route.request().allHeaders();
    await route.fulfill({ response: await answerTo(route, headers) });
  });
  await giveOnce(page, site, { issued: -3600, expires: 30 });

  await page.goto(`/servers/${server.id}/keys`);

  // At the token's end at the latest.
  await expect(page).toHaveURL(/sign-in/, { timeout: 60_000 });
  await page.unrouteAll({ behavior: 'wait' });
  await expect(
    page
      .getByText(t.signIn.endExpired())
      .or(page.getByText(t.signIn.endElsewhere()))
      .or(page.getByText(t.signIn.endReused())),
  ).toBeVisible();
  await expect(page.getByText('wanted')).toBeHidden();
  await fillSignIn(page, account);
  await expect(page).toHaveURL(`/servers/${server.id}/keys`);
  await expect(page.getByRole('cell', { name: 'wanted', exact: true })).toBeVisible();
});

test('who is not signed in is led to the door and comes to where they wanted', async ({ page, account, site }) => {
  const server = await site.server(account, 'goal');

  await page.goto(`/servers/${server.id}/settings`);
  await expect(page).toHaveURL(/sign-in/);
  await fillSignIn(page, account);

  await expect(page.getByRole('heading', { name: 'goal', level: 1 })).toBeVisible();
  await expect(page).toHaveURL(`/servers/${server.id}/settings`);
});

test('the door leads to no other place than this service', async ({ page, account, site }) => {
  for (const to of ['//example.com/', 'https://example.com/', '/\\example.com', 'javascript:alert(1)']) {
    await page.context().clearCookies();
    await page.goto(`/sign-in?to=${encodeURIComponent(to)}`);
    await fillSignIn(page, account);
    await expect(navigation(page)).toBeVisible();
    expect(new URL(page.url()).origin).toBe(site.origin);
  }
});

test('a wrong password is refused, and what was typed as a name stays', async ({ page, account }) => {
  await page.goto('/sign-in');
  await fillSignIn(page, { ...account, password: 'not the password' });

  await expect(page.getByRole('alert')).toBeVisible();
  await expect(page.getByLabel(t.signIn.usernameOrEmail())).toHaveValue(account.username);
  await expect(navigation(page)).toBeHidden();
});

test('signing out in one tab signs the others out, and nothing of the person stays', async ({
  page,
  context,
  account,
  site,
}) => {
  await site.server(account, 'private');
  await signIn(page, account);
  await expect(page.getByRole('link', { name: 'private' })).toBeVisible();
  const other = await context.newPage();
  await other.goto('/');
  await expect(other.getByRole('link', { name: 'private' })).toBeVisible();

  await navigation(page).getByRole('button', { name: t.security.signOut() }).click();

  for (const one of [page, other]) {
    await expect(one).toHaveURL(/sign-in/);
    await expect(one.getByText('private')).toBeHidden();
  }
  await other.goto('/');
  await expect(other).toHaveURL(/sign-in/);
});

test('a sign-in that is ended elsewhere ends here at once', async ({ signedIn: page, account, visit }) => {
  await page.goto('/');
  await expect(navigation(page)).toBeVisible();
  const elsewhere = await visit(account, '/account/security');
  await expect(elsewhere.getByText(t.security.thisOne(), { exact: true })).toBeVisible();

  await elsewhere.getByRole('button', { name: t.security.endAll() }).click();
  await elsewhere.getByRole('dialog').getByRole('button').last().click();

  await expect(page).toHaveURL(/sign-in/);
  await expect(page.getByText(t.signIn.endElsewhere())).toBeVisible();
  await expect(elsewhere.getByRole('button', { name: t.security.signOutHere() })).toBeVisible();
  await expect(elsewhere.getByRole('button', { name: t.security.endAll() })).toBeHidden();
});

test('a changed password ends every other sign-in and keeps this one', async ({ signedIn: page, account, visit }) => {
  await page.goto('/');
  await expect(navigation(page)).toBeVisible();
  const other = await visit(account, '/account/security');

  await other.getByLabel(t.security.current(), { exact: true }).fill(PASSWORD);
  await other.getByLabel(t.security.next(), { exact: true }).fill('another horse battery');
  await other.getByLabel(t.security.again(), { exact: true }).fill('another horse battery');
  await other.getByRole('button', { name: t.security.change() }).click();

  await expect(page).toHaveURL(/sign-in/);
  await other.reload();
  await expect(navigation(other)).toBeVisible();
  await fillSignIn(page, { ...account, password: 'another horse battery' });
  await expect(navigation(page)).toBeVisible();
});
