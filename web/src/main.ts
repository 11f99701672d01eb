import { mount } from 'svelte';
import './styles/tokens.css';
import './styles/elements.css';
import './styles/classes.css';
import App from './App.svelte';
import { watchStyles } from './router/loading';
import { startLanguage } from './text/language';

watchStyles();

const target = document.getElementById('app');
if (target) void startLanguage().then(() => mount(App, { target }));
