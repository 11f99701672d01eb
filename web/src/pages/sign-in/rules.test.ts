import { expect, test } from 'vitest';
import {
  accountFaults,
  confirmFault,
  emailFault,
  passwordFault,
  passwordHint,
  setupCodeFault,
  usernameFault,
} from './rules';

test('user names have 3 to 64 plain characters', () => {
  expect(usernameFault('ada')).toBeNull();
  expect(usernameFault(' ada.l-_9 ')).toBeNull();
  expect(usernameFault('ad')).toMatch(/3/);
  expect(usernameFault('a'.repeat(65))).toMatch(/64/);
  expect(usernameFault('ada lovelace')).toMatch(/letters/);
  expect(usernameFault('')).toMatch(/Choose/);
});

test('an e-mail address has something on both sides of an @', () => {
  expect(emailFault('ada@example.com')).toBeNull();
  expect(emailFault('ada@localhost')).toBeNull();
  expect(emailFault('ada')).not.toBeNull();
  expect(emailFault('ada@')).not.toBeNull();
  expect(emailFault('')).not.toBeNull();
});

test('passwords have 8 to 128 characters, whatever they are', () => {
  expect(passwordFault('12345678')).toBeNull();
  expect(passwordFault('🙂'.repeat(7))).toMatch(/7 so far/);
  expect(passwordFault('🙂'.repeat(8))).toBeNull();
  expect(passwordFault('x'.repeat(129))).toMatch(/128/);
});

test('a password is confirmed by the same', () => {
  expect(confirmFault('secret12', 'secret12')).toBeNull();
  expect(confirmFault('secret12', 'secret13')).toMatch(/don't match/);
  expect(confirmFault('secret12', '')).toMatch(/Confirm/);
});

test('a setup code is asked for where it is missing', () => {
  expect(setupCodeFault(' ')).toMatch(/log/);
  expect(setupCodeFault('3f2a9-04bc1-77de0-1a2b3')).toBeNull();
});

test('all faults of an account are found at once', () => {
  const account = { email: 'x', username: 'a b', full_name: '', password: 'short', password_confirm: 'other' };

  expect(Object.keys(accountFaults(account))).toEqual(['email', 'username', 'password', 'password_confirm']);
});

test('the hint says what makes a password easy to guess', () => {
  expect(passwordHint('aaaaaaaaaa')).toMatch(/repeat/);
  expect(passwordHint('ada-lovelace-1', ['Ada'])).toMatch(/your name/);
  expect(passwordHint('12345678')).toMatch(/row of keys/);
  expect(passwordHint('password123')).toMatch(/Too common/);
  expect(passwordHint('kf8#Lq2!z')).toMatch(/Good enough/);
  expect(passwordHint('correct horse battery')).toMatch(/good password/);
});
