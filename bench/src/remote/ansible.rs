//! Ansible's ad-hoc commands, over the existing SSH connection.

use std::fs;

use super::program::Program;
use super::sshd::Sshd;
use super::venv::Venvs;

/// `ansible -m command -a true`, with pipelining.
pub fn ansible(venvs: &Venvs, sshd: &Sshd) -> anyhow::Result<Program> {
    let folder = sshd.folder();
    let configuration = folder.join("ansible.cfg");
    let text = format!(
        "[defaults]\nhost_key_checking = False\nremote_user = {user}\nprivate_key_file = {key}\n\
         interpreter_python = /usr/bin/python3\nlocal_tmp = {folder}/ansible\nremote_tmp = {home}/ansible\n\
         [ssh_connection]\npipelining = True\nssh_args = -F none -o ControlMaster=no -o ControlPath={master}\n",
        user = sshd.user(),
        key = sshd.key().display(),
        folder = folder.display(),
        home = sshd.home().display(),
        master = sshd.control_path().display(),
    );
    fs::write(&configuration, text)?;
    let inventory = format!("127.0.0.1:{},", sshd.port());
    Ok(Program {
        program: venvs.program("ansible", "ansible")?,
        arguments: ["all", "-i", &inventory, "-m", "command", "-a", "true"].map(Into::into).to_vec(),
        environment: vec![("ANSIBLE_CONFIG", configuration.into())],
        log: folder.join("ansible.log"),
    })
}
