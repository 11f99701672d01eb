import { mount } from 'svelte';
import './styles/tokens.css';
import './styles/elements.css';
import './styles/classes.css';
import App from './App.svelte';
import { watchStyles } from './router/loading';

watchStyles();

const target = document.getElementById('app');
if (target) mount(App, { target });
