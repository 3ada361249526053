#include "rig/server_process.h"

#include <signal.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace leasehold::rig {

using namespace std::chrono_literals;

ServerProcess::ServerProcess(Plan plan) : plan_(std::move(plan)) {
  start();
}

ServerProcess::~ServerProcess() {
  kill();
}

void ServerProcess::start() {
  start_without_waiting();
  wait_until_it_answers();
}

void ServerProcess::start_without_waiting() {
  auto child = process::Child::start({.argv = plan_.argv,
                                      .environment = plan_.environment,
                                      .in = process::Null{},
                                      .out = process::ToFile{plan_.log, true},
                                      .err = process::ToFile{plan_.log, true},
                                      .placement = process::Placement::own_group,
                                      .parent_death_signal = SIGKILL});
  if (!child) throw std::runtime_error(child.error().message);
  child_.emplace(std::move(*child));
}

void ServerProcess::wait_until_it_answers() {
  const auto give_up = std::chrono::steady_clock::now() + 60s;
  while (!plan_.answers()) {
    // There is no event for "it is ready", so this is polled.
    const auto ended = child_->wait_for(10ms);
    if (!ended && std::chrono::steady_clock::now() < give_up) continue;
    throw std::runtime_error(plan_.argv.front() + (ended ? " " + ended->describe() : " is silent") +
                             ":\n" + log());
  }
}

void ServerProcess::stop(int signal) {
  if (!child_) return;
  child_->signal(SIGCONT);
  child_->signal(signal);
  if (!child_->wait_for(10s)) kill();
  child_.reset();
}

void ServerProcess::kill() {
  if (!child_) return;
  child_->signal_group(SIGKILL);
  child_->wait();
  child_.reset();
}

void ServerProcess::freeze() {
  child_->freeze();
}

void ServerProcess::thaw() {
  child_->signal_group(SIGCONT);
}

bool ServerProcess::runs() {
  return child_ && !child_->poll();
}

pid_t ServerProcess::pid() const {
  return child_->pid();
}

std::string ServerProcess::log() const {
  std::ifstream file(plan_.log);
  std::string text(std::istreambuf_iterator<char>(file), {});
  return text.size() > 4000 ? text.substr(text.size() - 4000) : text;
}

}  // namespace leasehold::rig
