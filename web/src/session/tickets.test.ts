// @vitest-environment jsdom
import { beforeEach, expect, test } from 'vitest';
import { dropAllTickets, dropTicket, keepTicket, ticketOf } from './tickets';

const TICKET = {
  terminalId: '01936f2e-0000-7000-8000-000000000001',
  secret: 'c2VjcmV0',
  bytes: 7,
  until: Date.now() + 60_000,
};

beforeEach(() => sessionStorage.clear());

test('each server has its ticket', () => {
  keepTicket('web-1', TICKET);

  expect(ticketOf('web-1')).toEqual(TICKET);
  expect(ticketOf('web-2')).toBeNull();
  dropTicket('web-1');
  expect(ticketOf('web-1')).toBeNull();
});

test('all tickets go with the sign-in, and nothing else', () => {
  sessionStorage.setItem('other', '1');
  keepTicket('web-1', TICKET);
  keepTicket('web-2', TICKET);

  dropAllTickets();

  expect(Object.keys(sessionStorage)).toEqual(['other']);
});

test('nothing is resumed after its time', () => {
  keepTicket('web-1', { ...TICKET, until: Date.now() });

  expect(ticketOf('web-1')).toBeNull();
});

test.each(['', '1', '{', '{}', '{"terminalId":1,"secret":"x"}', '{"terminalId":"1","secret":"x"}'])(
  '%s is no ticket',
  (text) => {
    sessionStorage.setItem('terminal:web-1', text);

    expect(ticketOf('web-1')).toBeNull();
  },
);
