#include "tools/gpuledger/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/gpuledger/exit_codes.h"

namespace gpuledger {
namespace {

constexpr std::array<int, 4> kForwarded = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr int kSignalBase = 128;

// Whom signals go on to: a process, or minus a process group. Written before the handlers are installed, read by them.
std::atomic<pid_t> g_target{0};

void Forward(int signal_number, siginfo_t* info, void*) {
  const int saved = errno;
  const pid_t target = g_target.load(std::memory_order_relaxed);
  // What the terminal sends, it sends to the whole foreground group, the child included; twice would be once too many.
  const bool from_terminal = info->si_code == SI_KERNEL;
  if (target < 0 || (target > 0 && !from_terminal)) kill(target, signal_number);
  errno = saved;
}

// Installed while the child runs; restores what was there.
class SignalForwarding {
 public:
  explicit SignalForwarding(pid_t target) {
    g_target.store(target, std::memory_order_relaxed);
    struct sigaction action {};
    action.sa_sigaction = Forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigfillset(&action.sa_mask);
    for (std::size_t i = 0; i < kForwarded.size(); ++i) sigaction(kForwarded[i], &action, &before_[i]);
  }
  ~SignalForwarding() {
    for (std::size_t i = 0; i < kForwarded.size(); ++i) sigaction(kForwarded[i], &before_[i], nullptr);
    g_target.store(0, std::memory_order_relaxed);
  }
  SignalForwarding(const SignalForwarding&) = delete;
  SignalForwarding& operator=(const SignalForwarding&) = delete;

 private:
  std::array<struct sigaction, kForwarded.size()> before_{};
};

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void ExecChild(char* const* arguments, char* const* environment, const sigset_t& mask, int error_fd) {
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvpe(arguments[0], arguments, environment);
  const int error = errno;
  (void)!write(error_fd, &error, sizeof(error));
  _exit(kNotFound);
}

int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kCannotRun;
  }
  return WIFSIGNALED(status) ? kSignalBase + WTERMSIG(status) : WEXITSTATUS(status);
}

int CannotRun(const std::string& what, int error) {
  std::fprintf(stderr, "gpuledger: cannot run %s: %s\n", what.c_str(), std::strerror(error));
  return error == ENOENT ? kNotFound : kCannotRun;
}

}  // namespace

Environment CurrentEnvironment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view variable = *entry;
    const std::size_t equals = variable.find('=');
    if (equals != absl::string_view::npos) {
      environment[std::string(variable.substr(0, equals))] = std::string(variable.substr(equals + 1));
    }
  }
  return environment;
}

int RunProcess(const std::vector<std::string>& command, const Environment& environment) {
  std::vector<std::string> arguments = command, variables;
  for (const auto& [name, value] : environment) variables.push_back(absl::StrCat(name, "=", value));
  const std::vector<char*> argv = Pointers(arguments), envp = Pointers(variables);
  int errors[2];
  if (pipe2(errors, O_CLOEXEC) != 0) return CannotRun(command[0], errno);
  // A group of its own takes signals as a whole. With a terminal, the child must stay in the foreground group, which
  // gets the terminal's signals anyway.
  const bool own_group = isatty(STDIN_FILENO) == 0;
  // No signal may come between the fork and the handlers: it would end us, and leave the child behind.
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t child = fork();
  if (child == 0) {
    if (own_group) setpgid(0, 0);
    ExecChild(argv.data(), envp.data(), before, errors[1]);
  }
  const int fork_error = errno;
  close(errors[1]);
  if (child < 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    close(errors[0]);
    return CannotRun(command[0], fork_error);
  }
  if (own_group) setpgid(child, child);  // whoever comes first; the other call fails harmlessly
  const SignalForwarding forwarding(own_group ? -child : child);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int error = 0;
  const bool failed = read(errors[0], &error, sizeof(error)) == sizeof(error);
  close(errors[0]);
  const int status = WaitFor(child);
  return failed ? CannotRun(command[0], error) : status;
}

std::string OutputOf(const std::vector<std::string>& command) {
  std::vector<std::string> arguments = command;
  const std::vector<char*> argv = Pointers(arguments);
  int output[2];
  if (pipe2(output, O_CLOEXEC) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(output[1], STDOUT_FILENO);
    execvp(argv[0], argv.data());
    _exit(kNotFound);
  }
  close(output[1]);
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t count = 0;
  while (child > 0 && (count = read(output[0], buffer.data(), buffer.size())) != 0) {
    if (count < 0 && errno != EINTR) break;
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(output[0]);
  return child > 0 && WaitFor(child) == 0 ? text : "";
}

}  // namespace gpuledger
