import { expect, test } from 'vitest';
import { serviceInfo } from './service';

test('what the service tells is understood', () => {
  const body = {
    version: '0.1.0',
    needs_setup: true,
    setup_code_required: true,
    registration: 'closed',
    password_login: 'admins',
    oidc: { name: 'Corp' },
    public_url: 'https://box.example',
    email: false,
    push_key: 'BP4z',
  };

  expect(serviceInfo(body)).toEqual({
    version: '0.1.0',
    needs_setup: true,
    setup_code_required: true,
    registration: 'closed',
    password_login: 'admins',
    provider: 'Corp',
    public_url: 'https://box.example',
    email: false,
    push_key: 'BP4z',
  });
});

test('a service that tells nothing restricts nothing', () => {
  const unknown = {
    version: null,
    needs_setup: false,
    setup_code_required: false,
    registration: 'open',
    password_login: 'on',
    provider: null,
    public_url: null,
    email: null,
    push_key: null,
  };

  expect(serviceInfo(undefined)).toEqual(unknown);
  expect(serviceInfo({ detail: 'Not found' })).toEqual(unknown);
});
