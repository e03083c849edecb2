;;; Opens a file, types into it, and has acp.el send one prompt to an agent over ACP. -*- lexical-binding: t; -*-
;; FILEPACT_SCENE: as for codecompanion.lua.
(require 'json)
(require 'autorevert)
(setq scene (json-parse-string (getenv "FILEPACT_SCENE") :object-type 'alist :array-type 'list))
(dolist (one (alist-get 'plugins scene))
  (add-to-list 'load-path one))
(require 'acp)
(setq make-backup-files nil
      auto-save-default nil
      create-lockfiles nil
      auto-revert-verbose nil)

(defun tell (name value)
  (princ (concat (json-serialize (vector name value)) "\n")))

(global-auto-revert-mode 1)
(setq edited (find-file-noselect (alist-get 'file scene)))
(with-current-buffer edited
  (goto-char (point-max))
  (unless (string-empty-p (alist-get 'typed scene))
    (insert (alist-get 'typed scene) "\n")))
(setq command (alist-get 'command scene)
      done nil
      client (acp-make-client :context-buffer (current-buffer)
                              :command (car command)
                              :command-params (cdr command)))
(acp-subscribe-to-notifications :client client :on-notification #'ignore)
(acp-subscribe-to-requests
 :client client
 :on-request (lambda (request) (tell "asked" (alist-get 'method request))))

(defun ask (request next)
  (acp-send-request :client client
                    :request request
                    :on-success next
                    :on-failure (lambda (error)
                                  (tell "failed" (format "%S" error))
                                  (kill-emacs 1))))

(ask (acp-make-initialize-request :protocol-version 1
                                  :read-text-file-capability t
                                  :write-text-file-capability t)
     (lambda (_)
       (ask (acp-make-session-new-request :cwd (file-name-directory (alist-get 'file scene)))
            (lambda (opened)
              (ask (acp-make-session-prompt-request
                    :session-id (alist-get 'sessionId opened)
                    :prompt [((type . "text") (text . "go"))])
                   (lambda (_) (setq done t)))))))
(while (not done)
  (accept-process-output nil 0.05))
(auto-revert-buffers)
(with-current-buffer edited
  (tell "buffer" (vconcat (split-string (buffer-string) "\n" t)))
  (tell "modified" (if (buffer-modified-p) t :false)))
(acp-shutdown :client client)
